"""The link to a place may be cut, hang or lie: no output is lost or doubled, and nothing else is harmed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from holdfast.errors import Unreachable
from holdfast.model.process import HeldProcess
from holdfast.places import keeper_link
from holdfast.places.base import ExecutionPlace, PlaceGone
from holdfast.places.mirrored import MirroredPlace
from holdfast.places.relay import link as relay_link
from holdfast.places.relay import mirror_source
from holdfast.places.relay.link import FrameReader, RelayPeer, RelayProcess, start_relay
from holdfast.places.relay.program import MARK
from holdfast.places.remote import RemotePlace
from holdfast_keeper import protocol
from tests.contracts.staged import HELLO, RELAY, RelayedPlace, SharedPlace, StagedPlace
from tests.support import eventually

#: Numbers, some at a time, until 20 more were written after `go` exists.
COUNT = 'i=0; end=; while [ "$i" != "$end" ]; do i=$((i + 1)); echo "line $i"; sleep 0.002; ' \
    '[ -z "$end" ] && [ -e "$0" ] && end=$((i + 20)); done; exit 3'  # fmt: skip


@pytest.fixture(params=[SharedPlace, RelayedPlace])
def staged(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StagedPlace]:
    yield from _stage(request.param, tmp_path)


@pytest.fixture
def mirrored(tmp_path: Path) -> Iterator[StagedPlace]:
    yield from _stage(RelayedPlace, tmp_path)


def _stage(make: Callable[[StagedPlace], ExecutionPlace], home: Path) -> Iterator[StagedPlace]:
    staged = StagedPlace(make, home)
    yield staged
    staged.close()


def relay_pid(staged: StagedPlace) -> int:
    assert isinstance(staged.place, RemotePlace)
    return int(staged.place.link.about["pid"])


def count(staged: StagedPlace) -> tuple[HeldProcess, Path]:
    go = staged.home / "go"
    return staged.start("sh", "-c", COUNT, str(go)), go


def expect_all_lines(staged: StagedPlace, process: HeldProcess) -> None:
    assert staged.report_at_end(process)["exit"]["code"] == 3
    lines = staged.output(process).decode().splitlines()
    assert lines == [f"line {number}" for number in range(1, len(lines) + 1)]
    assert len(lines) >= 20


def grown(staged: StagedPlace, process: HeldProcess) -> None:
    size = len(staged.output(process))
    staged.until(lambda: len(staged.output(process)) > size)


def test_a_relay_that_is_killed_again_and_again_costs_no_output(staged: StagedPlace) -> None:
    process, go = count(staged)
    for _ in range(5):
        pid = relay_pid(staged)
        os.kill(pid, signal.SIGKILL)
        staged.until_async(partial(_is_new, staged, pid))
        grown(staged, process)
    go.touch()
    expect_all_lines(staged, process)


async def _is_new(staged: StagedPlace, before: int) -> bool:
    """A call opens the link again."""
    try:
        await staged.place.members(staged.processes[0].id)
    except Unreachable:
        return False
    return relay_pid(staged) != before


def test_a_keeper_that_is_killed_again_and_again_costs_no_output(mirrored: StagedPlace) -> None:
    process, go = count(mirrored)
    for _ in range(3):
        grown(mirrored, process)
        is_greeted = partial(_is_longer, mirrored.hellos, len(mirrored.hellos))
        os.kill(mirrored.place.keeper.about["pid"], signal.SIGKILL)
        mirrored.until(is_greeted)
    go.touch()
    expect_all_lines(mirrored, process)


def _is_longer(found: list[protocol.Message], than: int) -> bool:
    return len(found) > than


def test_a_relay_that_was_stopped_for_a_while_goes_on(mirrored: StagedPlace) -> None:
    process, go = count(mirrored)
    grown(mirrored, process)
    os.kill(relay_pid(mirrored), signal.SIGSTOP)
    go.touch()
    there = mirrored.home / "there"
    mirrored.until(lambda: _has_ended(there, process))
    assert mirrored.output(process) == b"" or not mirrored.output(process).endswith(_log(there, process)[-20:])
    os.kill(relay_pid(mirrored), signal.SIGCONT)
    expect_all_lines(mirrored, process)


def _has_ended(there: Path, process: HeldProcess) -> bool:
    return b'"code":3' in _bundle(there, process).joinpath("state").read_bytes()


def _bundle(there: Path, process: HeldProcess) -> Path:
    return next(path for state in ("live", "done", "live") if (path := there / state / process.id).is_dir())


def _log(there: Path, process: HeldProcess) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(_bundle(there, process).glob("out.0*")))


def test_the_end_of_a_relay_harms_neither_keeper_nor_commands(staged: StagedPlace) -> None:
    process = staged.start("cat", stdin=True)
    keepers = staged.place.keeper_pids
    os.kill(relay_pid(staged), signal.SIGKILL)
    staged.until(lambda: "relay-lost" in staged.notes)
    staged.until_async(lambda: _is_new(staged, 0))
    assert staged.place.keeper_pids == keepers
    staged.write(process, b"still there")
    staged.until(lambda: staged.output(process) == b"still there")
    staged.stop(process)


@pytest.mark.full
def test_a_relay_that_hangs_is_replaced_and_calls_fail_meanwhile(
    staged: StagedPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_link, "_SILENCE_LIMIT", 0.2)
    monkeypatch.setattr(relay_link, "_PONG_BUDGET", 0.3)
    process = staged.start("cat", stdin=True)
    pid = relay_pid(staged)
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(Unreachable):
        staged.run(staged.place.members(process.id))
    assert time.monotonic() - began < 9.0, "not until the call is given up"
    staged.until_async(lambda: _is_new(staged, pid))
    staged.write(process, b"x")
    staged.until(lambda: staged.output(process) == b"x")
    staged.stop(process)


def test_what_is_pushed_while_the_link_is_cut_is_complete_when_the_end_is_known(mirrored: StagedPlace) -> None:
    """The answer that reports the end comes behind all bytes."""
    process = mirrored.start("sh", "-c", "seq 1 300000; exit 3")
    report = mirrored.until(lambda: next((fact for fact in mirrored.facts if fact["fact"] == "ended"), None))
    expected = "".join(f"{number}\n" for number in range(1, 300001)).encode()
    assert report["report"]["exit"]["code"] == 3
    assert report["id"] == process.id
    kept = expected[report["report"]["streams"]["out"]["first"] :]
    assert _read_all(mirrored, process) == kept


def _read_all(staged: StagedPlace, process: HeldProcess) -> bytes:
    data = b""
    with staged.place.log(process.id, "out") as log:
        at = log.extent().first
        while chunk := log.read(at).data:
            data += chunk
            at += len(chunk)
    return data


#: A daemon in small: it mirrors until it is killed.
MIRROR_ONLY = """
import asyncio, sys
from pathlib import Path
from tests.contracts.staged import RelayedPlace, StagedPlace
staged = StagedPlace(RelayedPlace, Path(sys.argv[1]))
staged.run(asyncio.sleep(1000))
"""


@pytest.mark.full
def test_a_daemon_that_is_killed_while_it_copies_finds_nothing_doubled(tmp_path: Path) -> None:
    first = StagedPlace(RelayedPlace, tmp_path)
    go = tmp_path / "go"
    process = first.start("sh", "-c", 'while [ ! -e "$0" ]; do seq 1 2000; done; echo end; exit 3', str(go))
    copy = tmp_path / "mirror"
    try:
        os.kill(relay_pid(first), signal.SIGKILL)
        for _ in range(4):
            size = _size(copy)
            daemon = subprocess.Popen([sys.executable, "-c", MIRROR_ONLY, str(tmp_path)])
            eventually(partial(_has_grown, copy, size))
            daemon.kill()
            daemon.wait()
        go.touch()
        expected = first.report_at_end(process)
        assert expected["exit"]["code"] == 3
        original, mirror = tmp_path / "there" / "done" / process.id, copy / "done" / process.id
        first.until(mirror.is_dir)
        for path in (*original.glob("out.*"), original / "spec.json", original / "state"):
            if not path.name.endswith(".fifo"):
                assert mirror.joinpath(path.name).read_bytes() == path.read_bytes()
        assert len(list(mirror.glob("out.0*"))) == len(list(original.glob("out.0*")))
    finally:
        first.close()


#: Both streams in small steps, until `go` exists.
BOTH = 'while [ ! -e "$0" ]; do seq 1 200; seq 1 300 >&2; sleep 0.002; done; echo end; exit 3'


def test_a_log_of_many_segments_is_the_same_in_both_places(mirrored: StagedPlace) -> None:
    go = mirrored.home / "go"
    process = mirrored.start("sh", "-c", BOTH, str(go), split=True, launch={"log_cap": 64 << 10})
    for _ in range(2):
        end = _end(mirrored, process)
        mirrored.until(lambda end=end: _end(mirrored, process) > end + (100 << 10))  # type: ignore[misc]
        pid = relay_pid(mirrored)
        os.kill(pid, signal.SIGKILL)
        mirrored.until_async(partial(_is_new, mirrored, pid))
    go.touch()
    assert mirrored.report_at_end(process)["exit"]["code"] == 3
    mirrored.until(lambda: process.id in mirrored.place.ended())
    original, mirror = (_segments(mirrored.home / at / "done" / process.id) for at in ("there", "mirror"))
    assert mirror == original and len(original) > 4
    assert {name.partition(".")[0] for name in original} == {"out", "err"}


def _end(staged: StagedPlace, process: HeldProcess, stream: str = "err") -> int:
    with staged.place.log(process.id, stream) as log:
        return log.extent().end


def _segments(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.suffix[1:].isdigit()}


def test_segments_that_are_sent_are_not_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "live" / "proc_0123456789ab"
    directory.mkdir(parents=True)
    names = [f"{stream}.{start:020d}" for stream in ("err", "out") for start in (0, 3, 6)]
    for name in names:
        (directory / name).write_bytes(b"abc")
    reading, writing = os.pipe()
    output = mirror_source.RelayOutput(writing, str(tmp_path))
    source = mirror_source.BundleSource(directory.name)
    looked: list[object] = []
    look = os.stat

    def noted(path: object, **more: object) -> os.stat_result:
        looked.append(path)
        return look(path, **more)  # type: ignore[arg-type]

    list(source.send(str(tmp_path), output))
    monkeypatch.setattr(os, "stat", noted)
    (directory / names[-1]).write_bytes(b"abcdef")
    list(source.send(str(tmp_path), output))
    assert looked == [names[2], names[5]]
    assert source.ends == {"out": 12, "err": 9}
    os.close(reading)


def _has_grown(copy: Path, before: int) -> bool:
    return _size(copy) != before


def _size(copy: Path) -> int:
    """Of what is there. A segment may be dropped meanwhile."""
    sizes = []
    for path in copy.rglob("out.0*"):
        with contextlib.suppress(FileNotFoundError):
            sizes.append(path.stat().st_size)
    return sum(sizes)


def test_a_forgotten_process_is_removed_from_the_copy(mirrored: StagedPlace) -> None:
    process = mirrored.start("printf", "gone soon")
    mirrored.report_at_end(process)
    mirrored.until(lambda: process.id in mirrored.place.ended())
    mirrored.request("forget", id=process.id)
    assert process.id not in mirrored.place.ended()
    assert mirrored.output(process) == b""


def test_a_process_that_is_run_again_is_followed_again(mirrored: StagedPlace) -> None:
    process = mirrored.start("sh", "-c", "echo run; exec cat", stdin=True)
    mirrored.until(partial(_has_run, mirrored, process, 1))
    mirrored.stop(process)
    mirrored.report_at_end(process)
    for run in (1, 2):
        mirrored.request("rerun", id=process.id, run=run, streak=0, cols=None, rows=None, despite_stop=True)
        mirrored.until(partial(_has_run, mirrored, process, run + 1))
        mirrored.stop(process)
        mirrored.until(lambda: process.id in mirrored.place.ended())


def _has_run(staged: StagedPlace, process: HeldProcess, times: int) -> bool:
    return staged.output(process) == b"run\n" * times


def test_a_line_is_here_soon_after_it_was_written(mirrored: StagedPlace) -> None:
    process = mirrored.start("cat", stdin=True)
    mirrored.write(process, b"warm\n")
    mirrored.until(lambda: mirrored.output(process) == b"warm\n")
    delays = []
    for number in range(20):
        size = len(mirrored.output(process))
        began = time.monotonic()
        mirrored.write(process, b"%d\n" % number)
        while len(mirrored.output(process)) == size:
            mirrored.run(asyncio.sleep(0.001))
        delays.append(time.monotonic() - began)
    assert sorted(delays)[4] < 0.05  # of the best: this machine may be busy
    mirrored.stop(process)


def test_a_line_does_not_wait_behind_much_output_of_another(mirrored: StagedPlace) -> None:
    loud = mirrored.start("sh", "-c", "exec head -c 400000000 /dev/zero")
    quiet = mirrored.start("cat", stdin=True)
    mirrored.write(quiet, b"now")
    mirrored.until(lambda: mirrored.output(quiet) == b"now")
    assert not any(fact["fact"] == "ended" for fact in mirrored.facts)
    for process in (loud, quiet):
        mirrored.stop(process)


#: Passes on what a program writes, at so many bytes per second.
_SLOW_LINK = """
import os, subprocess, sys, time
with subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE) as program:
    while data := os.read(program.stdout.fileno(), 4096):
        os.write(1, data)
        time.sleep(len(data) / float(sys.argv[1]))
"""


class SlowPlace(RelayedPlace):
    async def open_relay(self) -> RelayProcess:
        slowly = [sys.executable, "-c", _SLOW_LINK, "4e5"]
        environ = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
        return await start_relay([*slowly, *RELAY, self._there], environ)


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[StagedPlace]:
    yield from _stage(SlowPlace, tmp_path)


def test_on_a_slow_connection_nothing_waits_long_behind_much_output(slow: StagedPlace) -> None:
    quiet = slow.start("cat", stdin=True)
    loud = slow.start("sh", "-c", "head -c 20000000 /dev/zero; exec sleep 1000", launch={"log_cap": 1 << 26})
    delays = []
    for number in range(5):
        size = _end(slow, loud, "out")
        slow.until(lambda size=size: _end(slow, loud, "out") > size + (1 << 18))  # type: ignore[misc]
        began = time.monotonic()
        slow.write(quiet, b"x")
        slow.until(lambda number=number: len(slow.output(quiet)) == number + 1)  # type: ignore[misc]
        delays.append(time.monotonic() - began)
    assert _end(slow, loud, "out") < 19_000_000  # it is still being sent
    assert sorted(delays)[2] < 0.9, delays


# Relays that lie.


class FakePlace(MirroredPlace):
    """The relay is a program that writes these bytes."""

    name, key = "fake", "fake"

    def __init__(self, home: Path, output: bytes, then: str = "cat > /dev/null") -> None:
        super().__init__(str(home / "place"), hello=HELLO, note=lambda event, **_: None, running=lambda: ())
        self._output = home / "output"
        self._output.write_bytes(output)
        self._then = then

    async def open_relay(self) -> RelayProcess:
        return await start_relay(["sh", "-c", f"cat '{self._output}'; {self._then}"], dict(os.environ))


def _open(home: Path, output: bytes, then: str = "cat > /dev/null", rest: bytes = b"") -> str:
    (home / "rest").write_bytes(rest)

    async def run() -> str:
        place = FakePlace(home, output, then)
        try:
            with pytest.raises(OSError) as failed:
                await place.connect()
            return str(failed.value)
        finally:
            place.close()

    return asyncio.run(run())


ABOUT = {"hello": {"version": 1, "boot_id": "b", "default_directory": "/"}}
HOSTILE = [
    {"put": "../../stolen", "id": "proc_000000000000", "mtime": 0},
    {"put": "spec.json", "id": "../../stolen", "mtime": 0},
    {"put": "keeper.sock", "id": "proc_000000000000", "mtime": 0},
    {"file": "out.0", "id": "proc_000000000000", "at": -1, "size": 1, "mtime": 0},
    {"file": "out.0", "id": "proc_000000000000", "at": 0, "size": 1 << 40, "mtime": 0},
    {"file": "out.0", "id": ["x"], "at": 0, "size": 1, "mtime": 0},
    {"file": "out.0", "id": "proc_000000000000", "at": "x", "size": None, "mtime": 0},
    {"state": "../..", "id": "proc_000000000000"},
    {"drop": ["../../output"], "id": "proc_000000000000"},
    {"gone": "../.."},
]


@pytest.mark.parametrize("message", HOSTILE, ids=[str(number) for number in range(len(HOSTILE))])
def test_a_relay_cannot_write_outside_of_the_copy(tmp_path: Path, message: protocol.Message) -> None:
    frames = MARK + protocol.encode(ABOUT) + protocol.encode(message, [b"data"] if "put" in message else [])
    _open(tmp_path, frames + b"data")
    assert {path.name for path in tmp_path.iterdir()} <= {"place", "output", "rest"}
    assert (tmp_path / "output").read_bytes() == frames + b"data"
    assert not any(path.is_file() and path.stat().st_size for path in (tmp_path / "place").rglob("*"))


@pytest.mark.parametrize(
    "output",
    [
        b"",
        MARK,
        MARK + b"\x00\x00\x00\x02[]",
        MARK + b"\x7f\xff\xff\xff",
        MARK + b"\x00\x00\x00\x03{x}",
        b"\n" * 3000000,
    ],
    ids=["nothing", "mark", "list", "huge", "not-json", "noise"],
)
def test_a_program_that_is_no_relay_is_refused(tmp_path: Path, output: bytes) -> None:
    assert "\n" not in _open(tmp_path, output, then="exit 1")


def test_a_peer_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_link, "_HELLO_BUDGET", 0.3)
    assert "does not answer" in _open(tmp_path, b"")


def test_a_relay_of_another_protocol_is_refused_by_its_version(tmp_path: Path) -> None:
    assert "version 99" in _open(tmp_path, MARK + protocol.encode({"hello": {"version": 99}}))


@pytest.mark.parametrize(
    "messages",
    [
        [{"hello": 7}],
        [{"hello": {"version": 1}}],
        [ABOUT, {"rid": 1, "ok": None}],
        [ABOUT, {"rid": 1, "ok": {"pids": 7}}],
        [ABOUT, {"rid": 1, "error": {"kind": "refused", "code": "x", "message": "no"}}],
        [ABOUT, {"rid": 1, "error": 3}],
        [ABOUT, {"rid": [], "started": {}}],
    ],
)
def test_answers_that_make_no_sense_are_refused(tmp_path: Path, messages: list[protocol.Message]) -> None:
    frames = b"".join(map(protocol.encode, messages))
    # The answer comes when the call was sent.
    assert "\n" not in _open(
        tmp_path,
        MARK + frames[: len(protocol.encode(messages[0]))],
        f"head -c 5 > /dev/null; cat '{tmp_path}/rest'; sleep 0.2",
        rest=frames[len(protocol.encode(messages[0])) :],
    )


def test_the_error_of_the_program_is_the_reason(tmp_path: Path) -> None:
    assert _open(tmp_path, b"", "echo 'no route' >&2; exit 255") == "no route"


def test_what_a_profile_prints_before_the_relay_is_skipped(tmp_path: Path) -> None:
    class Noisy(RelayedPlace):
        async def open_relay(self) -> RelayProcess:
            command = ["sh", "-c", 'printf "Welcome\\n\\0!"; exec "$@"', "sh", *RELAY, self._there]
            return await start_relay(command, dict(os.environ))

    staged = StagedPlace(Noisy, tmp_path)
    process = staged.start("printf", "x")
    staged.report_at_end(process)
    assert staged.output(process) == b"x"
    staged.close()


# The keeper behind the link.


def test_a_keeper_that_hangs_is_unreachable_until_it_goes_on(
    staged: StagedPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper_link, "_SIGN_BUDGET", 0.3)
    monkeypatch.setattr(keeper_link, "_HELLO_BUDGET", 0.5)
    link = staged.place.keeper
    link.silence_limit, link._outage = 0.2, 0.5
    process = staged.start("cat", stdin=True)
    pid = link.about["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(Unreachable):
            staged.request("report", id=process.id)
        assert not link.is_reachable
    finally:
        os.kill(pid, signal.SIGCONT)
    staged.until(lambda: link.is_reachable)
    staged.write(process, b"still there")
    staged.until(lambda: staged.output(process) == b"still there")
    staged.stop(process)


def test_a_new_keeper_gets_the_terminals_back_before_the_relay_can_be_missed(mirrored: StagedPlace) -> None:
    """Keeper and anchor were killed, and only the relay has them: it must not wait with that."""
    process = mirrored.start("cat", pty=True, stdin=True)
    link = mirrored.place.keeper
    connect, may_connect = link._open_stream, asyncio.Event()

    async def connect_later() -> socket.socket:
        await may_connect.wait()
        return await connect()

    link._open_stream = connect_later
    took = []
    for _ in range(3):
        may_connect.clear()
        for pid in mirrored.place.keeper_pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        mirrored.run(asyncio.sleep(1.4))  # the next attempt of the relay is a second away
        count = len(mirrored.hellos)
        may_connect.set()
        mirrored.until(lambda count=count: len(mirrored.hellos) > count)  # type: ignore[misc]
        began = time.monotonic()
        mirrored.until(lambda: _has_terminal(link.about["pid"]))
        took.append(time.monotonic() - began)
    assert min(took) < 0.3  # of the best: this machine may be busy
    mirrored.stop(process)


def _has_terminal(pid: int) -> bool:
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(f"/proc/{pid}/fd/{name}").endswith("ptmx"):
                return True
    return False


def test_a_long_request_is_no_silence(staged: StagedPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper_link, "_SIGN_BUDGET", 1.5)
    staged.place.keeper.silence_limit = 0.05
    process = staged.start("cat", stdin=True)

    async def wait_and_write() -> None:
        waiting = asyncio.ensure_future(
            staged.place.keeper.request("wait_output", id=process.id, stream="out", after=0)
        )
        await asyncio.sleep(2.0)  # longer than the limit and what a sign of life may take
        assert not waiting.done()
        await staged.place.keeper.request("write", id=process.id, data="eA==", at=None)
        assert (await waiting)["end"] == 1

    staged.run(wait_and_write())
    assert "keeper-silent" not in staged.notes
    staged.stop(process)


def test_a_keeper_whose_hello_cannot_be_taken_is_not_asked_at_full_speed(
    staged: StagedPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keeper of this machine starts a daemon for each connection that ends."""
    tried = []

    def fail(hello: protocol.Message) -> None:
        tried.append(hello)
        raise RuntimeError("a defect")

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        staged.place.keeper._on_hello = fail
        assert staged.place.keeper._connection is not None
        staged.place.keeper._connection.close()
        await asyncio.sleep(1.0)  # so long it is counted

    staged.run(run())
    staged.place.keeper._on_hello = staged.hellos.append
    assert 2 <= len(tried) <= 15


def test_figures_come_again_after_a_relay_was_killed(staged: StagedPlace) -> None:
    process = staged.start("cat", stdin=True)
    pid = relay_pid(staged)
    os.kill(pid, signal.SIGKILL)
    staged.until(lambda: "relay-lost" in staged.notes)

    async def measured() -> bool:
        await staged.place.usage.fresh([process], max_age=0.0)
        track = staged.place.usage.tracks.get(process.id)
        return track is not None and bool(track.rss_bytes)

    staged.until_async(measured)
    assert relay_pid(staged) != pid
    staged.stop(process)


class _GonePlace(SharedPlace):
    """Once, it is gone."""

    has_been_gone = False

    async def open_relay(self) -> RelayProcess:
        if not self.has_been_gone:
            self.has_been_gone = True
            raise PlaceGone("it is gone")
        return await super().open_relay()


def test_a_call_that_finds_the_place_gone_does_not_hide_that(staged: StagedPlace) -> None:
    async def run() -> None:
        place = _GonePlace(staged)
        for _ in range(2):
            with pytest.raises(Unreachable, match="it is gone"):
                await place.port_owner(1)
            place.link.hurry()
        with pytest.raises(PlaceGone):
            await place.open()
        await place.open()
        peer = place.link._peer
        place.close()
        assert peer is not None
        await peer.close()

    staged.run(run())


# Waits.

#: A relay that answers each piece of input after a while; with `keep`, another process keeps its output open.
_SLOW_RELAY = """
import os, struct, subprocess, sys, threading, time
def say(text):
    os.write(1, struct.pack("!I", len(text)) + text)
os.write(1, bytes.fromhex(sys.argv[1]))
say(b'{"hello": {"version": 0}}')
if sys.argv[3:] == ["keep"]:
    child = subprocess.Popen(["sleep", "1000"])
    say(b'{"rid": 0, "started": %d}' % child.pid)
while os.read(0, 65536):
    threading.Timer(float(sys.argv[2]), say, [b'{"pong": 1}']).start()
"""


async def _slow_relay(delay: float, *more: str, on_message: Callable[[protocol.Message], None]) -> RelayPeer:
    command = [sys.executable, "-c", _SLOW_RELAY, MARK.hex(), str(delay), *more]

    def take(_: FrameReader, message: protocol.Message) -> bool:
        on_message(message)
        return False

    peer = RelayPeer(await start_relay(command, os.environ), take)
    await peer.begin()
    await peer.hello
    return peer


def test_a_busy_link_over_a_long_way_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_link, "_SILENCE_LIMIT", 0.05)
    monkeypatch.setattr(relay_link, "_PONG_BUDGET", 0.3)

    async def run() -> str | None:
        peer = await _slow_relay(0.15, on_message=lambda message: None)
        for _ in range(150):
            peer.send({"ping": 1})
            await asyncio.sleep(0.02)  # always something under way
        why = None if peer.is_open else peer.cut.result()
        await peer.close()
        return why

    assert asyncio.run(run()) is None


def test_the_end_of_a_client_is_noticed_although_another_process_has_its_output_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relay_link, "_OUTPUT_BUDGET", 0.1)
    found: list[protocol.Message] = []

    async def run() -> None:
        peer = await _slow_relay(0.0, "keep", on_message=found.append)
        await asyncio.to_thread(eventually, lambda: len(found) == 2)
        peer._relay.process.kill()
        async with asyncio.timeout(60):
            assert await peer.cut == "the relay has ended"
        await peer.close()

    try:
        asyncio.run(run())
    finally:
        os.kill(found[1]["started"], signal.SIGKILL)


def test_a_stream_that_was_closed_while_its_reader_was_late_does_not_hold_up_the_link(mirrored: StagedPlace) -> None:
    """The number of its descriptor is that of another file then, which can never be written."""
    place = mirrored.place
    assert isinstance(place, MirroredPlace)
    here, there = socket.socketpair()
    there.setblocking(False)
    number = there.fileno()
    place._streams[-1] = (there, None)  # type: ignore[assignment]
    message = {"stream": -1, "raw": [b"x" * (1 << 22)]}
    thread = threading.Thread(target=place._take, args=(None, message), daemon=True)
    thread.start()
    eventually(lambda: here.recv(1, socket.MSG_PEEK) == b"x")
    reading, writing = os.pipe()
    with place._stream_lock:
        del place._streams[-1]
    os.dup2(reading, number)
    thread.join(60)
    assert not thread.is_alive()
    there.detach()
    here.close()
    for fd in (number, reading, writing):
        os.close(fd)


def test_a_step_of_an_attempt_that_takes_long_is_logged(mirrored: StagedPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_link, "_STEP_LIMIT", 0.05)
    place = mirrored.place
    assert isinstance(place, MirroredPlace)
    open_relay, may_open = place.link._open_relay, asyncio.Event()

    async def open_late() -> RelayProcess:
        await may_open.wait()
        return await open_relay()

    place.link._open_relay = open_late
    os.kill(relay_pid(mirrored), signal.SIGKILL)
    mirrored.until(lambda: mirrored.notes.count("relay-slow") > 1)
    hellos = len(mirrored.hellos)
    may_open.set()
    mirrored.until(lambda: len(mirrored.hellos) > hellos)
