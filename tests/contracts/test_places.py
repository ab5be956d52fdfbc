"""What every place offers: processes are started, read, measured, identified and ended alike."""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.errors import CommandNotFound, NotExecutable
from holdfast.model.probes.prompts import Terminal
from holdfast.model.process import HeldProcess, Leftover, ProcessId
from holdfast.places.base import Refused
from holdfast.places.relay.file_program import MARK
from holdfast.wire.frames import FrameDecoder, Message, encode, encode_bytes, peer_credentials
from tests.contracts.staged import IMPLEMENTATIONS, StagedPlace
from tests.support import free_port

NO_PROCESS = ProcessId("proc_000000000000")
NO_PID = 2**31 - 1
LISTEN = "import socket, sys; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); sys.stdin.read()"
#: Its time on a processor is counted in hundredths of a second.
HELD = (
    "import time\nx = bytearray(30 << 20)\nwhile time.process_time() < 0.1: pass\nprint('there', flush=True)\ninput()"
)
#: Connects to the socket, then waits until that is closed.
CALL = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.recv(1)"
#: The same, in a child of a process that has died since.
CALL_AND_DIE = CALL.replace("s.recv(1)", "import os; os.fork() and os._exit(0); s.recv(1)")


#: They differ from e2b only in what carries the bytes, which tests/places/clouds shows in every run.
_IN_FULL_RUNS = ("modal", "daytona")


@pytest.fixture(
    scope="module",
    params=[pytest.param(one, marks=pytest.mark.full if one in _IN_FULL_RUNS else ()) for one in IMPLEMENTATIONS],
)
def staged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StagedPlace]:
    home = tmp_path_factory.mktemp("contract")
    staged = StagedPlace(IMPLEMENTATIONS[request.param], home)
    yield staged
    staged.close()


def wrote(staged: StagedPlace, process: HeldProcess, text: bytes) -> None:
    staged.until(lambda: text in staged.output(process))


# Files.


def copied(
    staged: StagedPlace, request: Message, data: bytes | None = None, ends: bool = True
) -> list[Message | bytes]:
    """The frames that the program for files answers."""

    async def copy() -> bytes:
        program = await staged.place.open_program("files")
        sent = encode({"format": "file", "directory": "/", **request})
        if data is not None:
            sent += encode_bytes(data) + (encode_bytes(b"") if ends else b"")
        return (await program.communicate(sent))[0]

    return FrameDecoder().feed(staged.run(copy()).partition(MARK)[2])


def test_files_are_written_and_read(staged: StagedPlace) -> None:
    path, data = f"/tmp/holdfast-{os.urandom(4).hex()}", bytes(range(256)) * 5000
    done = {"ok": {"path": path, "files": 1, "bytes": len(data)}}
    assert copied(staged, {"op": "put", "path": path, "mode": 0o640}, data) == [done]
    *pieces, last = copied(staged, {"op": "get", "path": path})
    assert (b"".join(piece for piece in pieces if isinstance(piece, bytes)), last) == (data, done)
    assert copied(staged, {"op": "put", "path": path}, b"half of it", ends=False) == []
    assert copied(staged, {"op": "get", "path": path})[-1] == done
    looked = staged.start("stat", "-c", "%a %s", path)
    staged.report_at_end(looked)
    assert staged.output(looked).split() == [b"640", str(len(data)).encode()]
    (refused,) = copied(staged, {"op": "get", "path": "/missing"})
    assert isinstance(refused, dict)
    assert refused["error"]["code"] == "not_found"
    staged.report_at_end(staged.start("rm", path))


# Output, exit and spec.


def test_output_is_read_by_offset(staged: StagedPlace) -> None:
    process = staged.start("printf", "0123456789")
    staged.report_at_end(process)
    assert staged.output(process) == b"0123456789"
    assert staged.output(process, offset=4) == b"456789"
    assert staged.output(process, offset=10) == b""
    with staged.place.log(process.id, "out") as log:
        assert log.extent() == (0, 10)


def test_output_is_read_in_a_thread_that_has_finished_when_read_returns(staged: StagedPlace) -> None:
    process = staged.start("printf", "abc")
    staged.report_at_end(process)
    log = staged.run(staged.place.read(staged.place.log, process.id, "out"))
    assert staged.run(staged.place.read(log.read, 0)).data == b"abc"
    log.close()


def test_streams_that_are_split_have_logs_of_their_own(staged: StagedPlace) -> None:
    process = staged.start("sh", "-c", "printf out; printf err >&2", split=True)
    staged.report_at_end(process)
    assert (staged.output(process), staged.output(process, "err")) == (b"out", b"err")


def test_a_process_without_a_bundle_has_an_empty_log(staged: StagedPlace) -> None:
    with staged.place.log(NO_PROCESS, "out") as log:
        assert (log.extent(), log.read(0).data) == ((0, 0), b"")


@pytest.mark.parametrize(("command", "code"), [("exit 0", 0), ("exit 7", 7)])
def test_the_exit_code_is_recorded(staged: StagedPlace, command: str, code: int) -> None:
    assert staged.report_at_end(staged.start("sh", "-c", command))["exit"]["code"] == code


def test_an_unknown_process_is_refused(staged: StagedPlace) -> None:
    for op in ("report", "tree"):
        with pytest.raises(Refused) as refused:
            staged.request(op, id=NO_PROCESS)
        assert refused.value.code == "not_found"


def test_the_spec_is_kept_while_the_process_runs_and_afterwards(staged: StagedPlace) -> None:
    process = staged.start("cat", stdin=True)
    assert staged.place.spec(process.id)["argv"] == ["cat"]
    assert process.id not in staged.place.ended()
    staged.stop(process)
    staged.until(lambda: process.id in staged.place.ended())
    spec = staged.place.spec(process.id)
    assert (spec["cwd"], spec["meta"]["id"], spec["env"]["HOLDFAST_ID"]) == ("/", process.id, process.id)
    assert process.id in [spec["meta"]["id"] for spec in staged.place.specs()]
    with pytest.raises(OSError):
        staged.place.spec(NO_PROCESS)


def test_a_spec_that_cannot_be_read_is_left_out_of_the_list(staged: StagedPlace) -> None:
    readable = list(staged.place.specs())
    damaged = Path(staged.place.directory, "done", NO_PROCESS)
    damaged.mkdir()
    (damaged / "spec.json").write_text("[]")
    try:
        with pytest.raises(ValueError, match="object"):
            staged.place.spec(NO_PROCESS)
        assert list(staged.place.specs()) == readable
    finally:
        (damaged / "spec.json").unlink()
        damaged.rmdir()


def test_input_reaches_the_process(staged: StagedPlace) -> None:
    process = staged.start("cat", stdin=True)
    staged.write(process, b"hello")
    wrote(staged, process, b"hello")
    staged.stop(process)


# Measuring.


def test_sizes_follow_the_output(staged: StagedPlace) -> None:
    process = staged.start("cat", stdin=True)
    assert staged.place.output_bytes(process) == 0
    assert staged.place.last_output_at(process) is None
    staged.write(process, b"12345")
    wrote(staged, process, b"12345")
    staged.until_async(lambda: _has_size(staged, process, 5))
    assert staged.place.output_bytes(process) == 5
    assert staged.place.last_output_at(process) is not None
    staged.stop(process)
    staged.until_async(lambda: _has_size(staged, process, 5))
    staged.place.forget(process.id)
    staged.until_async(lambda: _has_size(staged, process, 5))


async def _has_size(staged: StagedPlace, process: HeldProcess, size: int) -> bool:
    """False also on a busy machine that exceeds the budget."""
    measures = (await staged.place.sizes([process])).get(process.id)
    return measures is not None and measures.streams["out"].end == size


def test_what_a_process_uses_is_measured(staged: StagedPlace) -> None:
    process = staged.start(*staged.python, "-c", HELD, stdin=True)
    wrote(staged, process, b"there\n")

    async def used() -> bool:
        await staged.place.usage.fresh([process], max_age=0.0)
        track = staged.place.usage.tracks.get(process.id)
        return track is not None and (track.rss_bytes or 0) > 30 << 20 and (track.cpu_seconds or 0.0) > 0.0

    staged.until_async(used)
    activity = staged.run(staged.place.activity(process))
    assert activity.output_bytes == len("there\n")
    assert activity.cpu_seconds is not None
    assert activity.cpu_seconds > 0.0
    staged.stop(process)


def test_the_members_of_a_tree_are_listed(staged: StagedPlace) -> None:
    process = staged.start("sh", "-c", "sleep 1000 & wait")
    members = staged.until_async(lambda: _members(staged, process, 2))
    assert members[process.pid or 0] == "sh"
    assert sorted(members.values()) == ["sh", "sleep"]
    assert sorted(staged.run(staged.place.tree(process.id))) == sorted(members)
    assert ["sleep", "1000"] in staged.run(staged.place.command_lines(process.id))
    staged.stop(process)


async def _members(staged: StagedPlace, process: HeldProcess, count: int) -> dict[int, str]:
    found = {info.pid: info.name for info in await staged.place.members(process.id)}
    return found if len(found) == count and "sleep" in found.values() else {}


def test_what_a_process_waits_for_is_shown(staged: StagedPlace) -> None:
    process = staged.start("sleep", "1000")
    assert process.pid is not None
    staged.until_async(lambda: _sleeps(staged, process.pid or 0))
    assert staged.run(staged.place.wait_state(NO_PID)) is None
    staged.stop(process)


async def _sleeps(staged: StagedPlace, pid: int) -> bool:
    return (await staged.place.wait_state(pid) or "").startswith("S (sleeping)")


def test_a_port_of_the_tree_differs_from_one_of_another_process(staged: StagedPlace) -> None:
    port = free_port()
    process = staged.start("sh", "-c", f'exec {" ".join(staged.python)} -c "$0" {port}', LISTEN, stdin=True)
    other = staged.start("sleep", "1000")
    own, foreign = staged.place.port_watch(process, port), staged.place.port_watch(other, port)

    async def is_own() -> bool:
        return (await own.look()) == (True, False, None)

    staged.until_async(is_own)
    state = staged.run(foreign.look())
    assert (state.is_own, state.is_foreign, state.foreign_pid) == (False, True, process.pid)
    owner = staged.run(staged.place.port_owner(port))
    assert owner is not None and owner.pid == owner.ancestors[0] == process.pid
    staged.stop(process)

    async def is_free() -> bool:
        return (await foreign.look()) == (False, False, None)

    staged.until_async(is_free)
    assert staged.run(staged.place.port_owner(port)) is None
    staged.stop(other)


def test_the_whole_tree_is_killed(staged: StagedPlace) -> None:
    process = staged.start("sh", "-c", "setsid sleep 1000 & sleep 1000 & wait")
    pids = staged.until_async(lambda: _tree(staged, process, 3))
    assert staged.stop(process)["survivors"] == []
    staged.until(lambda: not any(staged.place.is_alive(pid) for pid in pids))
    assert staged.report_at_end(process)["exit"]["signal"] == signal.SIGTERM


async def _tree(staged: StagedPlace, process: HeldProcess, count: int) -> list[int]:
    pids = await staged.place.tree(process.id)
    return pids if len(pids) == count else []


# Input.


def test_the_settings_of_a_terminal_are_read(staged: StagedPlace) -> None:
    process = staged.start("sh", "-c", "read line; stty -echo; read line", pty=True)
    staged.until_async(lambda: _terminal(staged, process, Terminal(echo=True, canonical=True)))
    staged.write(process, b"x\n")
    staged.until_async(lambda: _terminal(staged, process, Terminal(echo=False, canonical=True)))
    staged.stop(process)
    staged.until_async(lambda: _terminal(staged, process, None))


async def _terminal(staged: StagedPlace, process: HeldProcess, expected: Terminal | None) -> bool:
    return await staged.place.terminal(process) == expected


@pytest.mark.parametrize("pty", [False, True])
def test_a_process_that_reads_its_input_differs_from_one_that_is_busy(staged: StagedPlace, pty: bool) -> None:
    reading = staged.start("cat", stdin=not pty, pty=pty)
    busy = staged.start("sleep", "1000", stdin=not pty, pty=pty)
    staged.until_async(lambda: _reads(staged, reading))
    state = staged.until_async(lambda: staged.place.input_state(busy))
    assert state.reader == "busy"
    assert (state.terminal is not None) == pty
    for process in (reading, busy):
        staged.stop(process)


async def _reads(staged: StagedPlace, process: HeldProcess) -> bool:
    state = await staged.place.input_state(process)
    return state is not None and state.reader == "reading"


def test_a_process_without_input_has_no_terminal_and_no_reader(staged: StagedPlace) -> None:
    process = staged.start("sleep", "1000")
    assert staged.run(staged.place.terminal(process)) is None
    assert staged.run(staged.place.input_state(process)) is None
    staged.stop(process)


# Identity.


#: No process of another place can call the daemon.
local_only = pytest.mark.parametrize("staged", ["local"], indirect=True)


def test_a_process_is_identified_by_boot_pid_and_start(staged: StagedPlace) -> None:
    process = staged.start("sleep", "1000")
    report = staged.request("report", id=process.id)
    born = report["born"]
    pid, start = born["pid"], born["start"]
    assert born["boot"] == staged.place.boot_id
    assert not staged.place.is_of_earlier_boot(report)
    assert staged.place.is_of_earlier_boot({**report, "born": {**born, "boot": "another"}})
    assert staged.place.is_alive(pid)
    assert staged.place.is_alive(pid, start)
    staged.until(lambda: not staged.place.is_alive(pid, start + 1))  # a later process with the same pid
    left = (Leftover(pid, start), Leftover(pid, start - 1), Leftover(NO_PID, 1))
    staged.until(lambda: staged.place.living(left) == [pid])
    staged.stop(process)
    staged.until(lambda: not staged.place.is_alive(pid, start))
    assert not staged.place.is_alive(pid)


@local_only
@pytest.mark.parametrize("code", [CALL, CALL_AND_DIE])
def test_a_caller_is_traced_to_the_process_that_it_runs_in(staged: StagedPlace, code: str, tmp_path: Path) -> None:
    path = f"{staged.home}/caller.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        server.settimeout(20)
        process = staged.start("sh", "-c", f'{sys.executable} -c "$0" {path}; sleep 1000', code)
        with server.accept()[0] as caller:
            pid = peer_credentials(caller)[0]
            if code == CALL:
                assert process.pid in [info.pid for info in staged.place.ancestors(pid)]
            else:
                staged.until(lambda: not list(staged.place.ancestors(pid)))
    os.unlink(path)
    staged.stop(process)


def test_a_caller_from_elsewhere_is_traced_to_no_held_process(staged: StagedPlace) -> None:
    process = staged.start("sleep", "1000")
    line = [info.pid for info in staged.place.ancestors(os.getpid())]
    assert process.pid not in line
    assert not staged.place.keeper_pids & set(line)
    assert list(staged.place.ancestors(NO_PID)) == []
    assert staged.run(staged.place.sudo_above(os.getpid())) is None
    staged.stop(process)


@local_only
def test_what_a_command_starts_has_its_marks(staged: StagedPlace) -> None:
    process = staged.start("sh", "-c", "setsid -f sleep 1000; echo; exec sleep 1000")
    staged.until(lambda: staged.output(process).endswith(b"\n"))
    group = process.group and os.path.basename(process.group)
    for pid in staged.run(staged.place.tree(process.id)):
        marks = staged.place.marks(pid)
        assert marks is not None and marks.group == group
    elsewhere = staged.place.marks(os.getpid())
    assert elsewhere is not None and elsewhere.group is None
    assert staged.place.marks(NO_PID) is None
    staged.stop(process)


def test_what_a_command_leaves_behind_is_adopted_by_the_keeper(staged: StagedPlace) -> None:
    process = staged.start("sh", "-c", "sleep 1000 & echo $!")
    staged.until(lambda: staged.output(process).endswith(b"\n"))
    left = int(staged.output(process))
    assert len(staged.place.keeper_pids) == 2
    if staged.place.key is None:
        staged.until(lambda: staged.place.keeper_pids & {info.pid for info in staged.place.ancestors(left)})
    staged.stop(process)


# Commands.


def test_a_command_text_runs_through_the_usual_shell_or_a_named_one(staged: StagedPlace, tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin:/bin"}
    argv = staged.run(staged.place.shell_argv("printf $((6 * 7))", None, env))
    assert os.path.basename(argv[0]) in ("bash", "sh")
    process = staged.start(*argv)
    staged.report_at_end(process)
    assert staged.output(process) == b"42"
    assert staged.run(staged.place.shell_argv("x", "sh", env)) == ("sh", "-c", "x")


def test_a_shell_that_is_missing_or_cannot_run_is_refused_by_name(staged: StagedPlace) -> None:
    env = {"PATH": "/usr/bin:/bin"}
    with pytest.raises(CommandNotFound, match="no-such-shell"):
        staged.run(staged.place.shell_argv("x", "no-such-shell", env))
    plain = next(path for path in ("/etc/passwd", "/etc/hosts") if not os.stat(path).st_mode & stat.S_IXUSR)
    with pytest.raises(NotExecutable, match=plain):
        staged.run(staged.place.shell_argv("x", plain, env))


def test_the_default_directory_exists(staged: StagedPlace) -> None:
    directory = staged.place.default_directory
    process = staged.start("sh", "-c", f"cd '{directory}' && printf yes")
    staged.report_at_end(process)
    assert os.path.isabs(directory)
    assert staged.output(process) == b"yes"


def test_the_login_environment_comes_from_a_login_shell(staged: StagedPlace) -> None:
    staged.run(staged.place.login.refresh())
    assert staged.place.login.is_fresh
    env = staged.run(staged.place.login.get())
    assert env["PATH"]
    assert not any(name.startswith("HOLDFAST_") for name in env)


# The keeper.


def test_the_anchor_is_known_before_the_keeper_answers(staged: StagedPlace) -> None:
    """Else a caller that they adopted would count as free while the keeper is stopped."""
    about, staged.place.keeper.about = staged.place.keeper.about, {}
    try:
        with staged.run(staged.place.connect()):
            assert about["anchor_pid"] in staged.place.keeper_pids
    finally:
        staged.place.keeper.about = about


def test_a_keeper_that_died_is_replaced_and_knows_its_processes(staged: StagedPlace) -> None:
    process = staged.start("cat", stdin=True)
    staged.until(lambda: not staged.holds_here or process.id in staged.place.fd_store.held)
    before, hellos = staged.place.keeper_pids, len(staged.hellos)
    staged.kill(staged.place.keeper.about["pid"])
    staged.until(lambda: len(staged.hellos) > hellos)
    assert staged.place.keeper_pids != before
    assert process.id in [report["id"] for report in staged.hellos[-1]["live"]]
    staged.write(process, b"still there")
    wrote(staged, process, b"still there")
    staged.stop(process)
