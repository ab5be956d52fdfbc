"""How commands in a sandbox start and end: as they would without one."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.client.sync import Client
from holdfast.errors import CommandNotFound, HoldfastError, NotExecutable, StartFailed
from tests.cli.calling import Terminal
from tests.daemon.acting import is_alive, kill_daemon, kill_keeper
from tests.support import eventually, run_cli


def inits(hf: Client) -> set[int]:
    """The inits of all sandboxes of an instance."""
    keeper = str(hf.status()["keeper_pid"])
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            comm, _, fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")
            if comm.endswith("(holdfast-init") and fields.split()[1] == keeper and is_alive(int(name)):
                found.add(int(name))
    return found


def init_of(hf: Client, pid: int | None) -> int:
    """The init of the sandbox that a process is in."""
    space = os.readlink(f"/proc/{pid}/ns/pid")
    return next(init for init in inits(hf) if os.readlink(f"/proc/{init}/ns/pid") == space)


@pytest.mark.parametrize(
    ("command", "reason", "code", "number"),
    [
        ("exit 0", "exited", 0, None),
        ("exit 7", "exited", 7, None),
        ("exit 137", "exited", 137, None),
        ("kill -KILL $$", "signaled", None, signal.SIGKILL),
        ("kill -TERM $$", "signaled", None, signal.SIGTERM),
        ("kill -SEGV $$", "signaled", None, signal.SIGSEGV),
    ],
)
def test_the_end_is_the_commands_own(
    hf: Client, work: Path, command: str, reason: str, code: int | None, number: int | None
) -> None:
    ended = hf.wait(hf.run(command, cwd=work, sandbox=True).id, timeout=20)
    assert (ended.reason, ended.exit_code, ended.signal) == (reason, code, number)
    assert ended.leftover_pids == []


def test_a_foreground_run_has_its_exit_code_and_its_input(hf: Client, work: Path) -> None:
    done = run_cli("run", "--sandbox", "-w", str(work), "--", "sh", "-c", "cat; exit 9", input=b"typed")
    assert (done.stdout, done.stderr, done.returncode) == (b"typed", b"", 9)


def test_stderr_can_be_split(hf: Client, work: Path) -> None:
    process = hf.run("echo out; echo err >&2", cwd=work, sandbox=True, split=True)
    hf.wait(process.id, timeout=20)
    assert hf.logs(process.id, stream="err").text == "err\n"


def test_the_pid_is_that_of_the_command(hf: Client, work: Path) -> None:
    process = hf.run(["sleep", "60"], cwd=work, sandbox=True)
    # The kernel shows the arguments a moment after the exec has begun.
    assert eventually(lambda: Path(f"/proc/{process.pid}/cmdline").read_bytes()) == b"sleep\x0060\0"
    os.kill(process.pid or 0, signal.SIGUSR1)
    assert hf.wait(process.id, timeout=20).signal == signal.SIGUSR1


def test_bubblewrap_is_gone_when_the_command_runs_and_its_init_when_it_has_ended(hf: Client, work: Path) -> None:
    process = hf.run("sleep 60", cwd=work, sandbox=True)
    init = init_of(hf, process.pid)
    assert inits(hf) == {init}
    hf.kill(process.id, grace=0.1)
    eventually(lambda: not is_alive(init))


@pytest.mark.parametrize(
    ("argv", "error", "said"),
    [
        (["no-such-program"], CommandNotFound, "no-such-program: command not found"),
        (["/etc/passwd"], NotExecutable, "/etc/passwd: cannot be executed"),
        (["./missing"], CommandNotFound, "./missing: command not found"),
    ],
)
def test_a_start_that_fails_says_why(
    hf: Client, work: Path, argv: list[str], error: type[HoldfastError], said: str
) -> None:
    before = inits(hf)
    with pytest.raises(error, match=said):
        hf.run(argv, cwd=work, sandbox=True)
    eventually(lambda: not inits(hf) - before)
    assert hf.ps(all=True) == []


def test_a_missing_directory_is_named(hf: Client, work: Path) -> None:
    with pytest.raises(StartFailed, match=f"cannot run in {work}/none: No such file"):
        hf.run("true", cwd=work / "none", sandbox=True)


def test_a_program_that_is_hidden_is_not_found(hf: Client, work: Path, tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    with pytest.raises(CommandNotFound):
        hf.run([str(tmp_path / "tool")], cwd=work, sandbox=True)


TREE = "setsid sleep 61 & (setsid env -i sleep 62 &); trap '' TERM; touch up; while :; do sleep 0.1; done"


@pytest.mark.parametrize("with_groups", [True, False])
def test_a_kill_reaches_everything_inside(
    home: Path, work: Path, with_groups: bool, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not with_groups:
        monkeypatch.setenv("HOLDFAST_NO_CGROUP", "1")
    hf = request.getfixturevalue("hf")
    process = hf.run(TREE, cwd=work, sandbox=True)
    eventually((work / "up").exists)
    init = init_of(hf, process.pid)
    space = os.readlink(f"/proc/{init}/ns/pid")
    (result,) = hf.kill(process.id, grace=0.2)
    assert result.survivors == []
    eventually(lambda: not is_alive(init))
    left = [pid for pid in filter(str.isdigit, os.listdir("/proc")) if _space(pid) == space and is_alive(int(pid))]
    assert left == []


def _space(pid: str) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def test_what_a_command_leaves_behind_goes_on_and_is_reported(hf: Client, work: Path) -> None:
    command = "setsid sh -c 'touch up; sleep 60' > /dev/null 2>&1 & until [ -e up ]; do sleep 0.01; done"
    process = hf.run(command, cwd=work, sandbox=True)
    ended = hf.wait(process.id, timeout=20)
    assert ended.exit_code == 0
    assert len(ended.leftover_pids) == 2
    hf.kill(process.id, grace=0.1)
    assert not any(map(is_alive, ended.leftover_pids))


def counting(go: Path) -> str:
    return f"for i in $(seq 1 30); do echo line $i; sleep 0.02; done; until [ -e {go} ]; do sleep 0.01; done; exit 7"


ROLES = [("keeper",), ("anchor",), ("keeper", "anchor"), ("daemon",), ("daemon", "keeper", "anchor")]
LINES = "".join(f"line {number}\n" for number in range(1, 31))


@pytest.mark.parametrize("roles", ROLES)
def test_it_outlives_crashes(hf: Client, work: Path, roles: tuple[str, ...]) -> None:
    process = hf.run(counting(work / "go"), cwd=work, sandbox=True)
    init = init_of(hf, process.pid)
    status = hf.status()
    for role in roles:
        os.kill(status["pid" if role == "daemon" else f"{role}_pid"], signal.SIGKILL)
    found = hf.inspect(process.id)
    assert (found.status, found.pid) == ("running", process.pid)
    (work / "go").touch()
    ended = hf.wait(process.id, timeout=20)
    assert (ended.reason, ended.exit_code) == ("exited", 7)
    assert hf.logs(process.id).text == LINES
    eventually(lambda: not is_alive(init))


@pytest.mark.parametrize("roles", [("keeper",), ("keeper", "anchor")])
def test_a_tree_can_be_killed_after_a_crash(hf: Client, work: Path, roles: tuple[str, ...]) -> None:
    process = hf.run(TREE, cwd=work, sandbox=True)
    eventually((work / "up").exists)
    init = init_of(hf, process.pid)
    kill_keeper(hf, *roles)
    eventually(lambda: hf.inspect(process.id).status == "running")
    hf.kill(process.id, grace=0.2)
    eventually(lambda: not is_alive(init))


def test_a_killed_init_ends_the_command_with_sigkill(hf: Client, work: Path) -> None:
    process = hf.run("sleep 60", cwd=work, sandbox=True)
    os.kill(init_of(hf, process.pid), signal.SIGKILL)
    ended = hf.wait(process.id, timeout=20)
    assert (ended.reason, ended.signal) == ("signaled", signal.SIGKILL)


def test_a_restart_policy_runs_it_in_a_new_sandbox(hf: Client, work: Path) -> None:
    command = "[ ! -e /tmp/x ] || echo kept; touch /tmp/x; echo x >> runs; [ $(wc -l < runs) = 3 ]"
    process = hf.run(command, cwd=work, sandbox=True, restart="on-failure", restart_delay=0.01)
    eventually(lambda: hf.inspect(process.id).exit_code == 0)
    ended = hf.inspect(process.id)
    assert ended.restarts == 2
    assert hf.logs(process.id).text == ""


def test_a_restart_keeps_the_sandbox_after_a_crash_of_the_daemon(hf: Client, work: Path) -> None:
    process = hf.run("touch /etc/x; sleep 60", cwd=work, sandbox=True)
    kill_daemon(hf)
    again = hf.restart(process.id)
    assert again.sandbox == {"writable": [], "network": "none"}
    assert _space(str(again.pid)) != _space("self")
    hf.kill(process.id, grace=0.1)


def test_a_queued_one_runs_in_its_sandbox(hf: Client, work: Path) -> None:
    process = hf.run("touch /etc/x; exit 4", cwd=work, sandbox=True, queue="q")
    assert hf.wait(process.id, timeout=20).exit_code == 4
    assert "Read-only" in hf.logs(process.id).text


def test_a_terminal(hf: Client, work: Path) -> None:
    command = "tty; stty size; trap 'stty size; exit 3' WINCH; echo up; while :; do sleep 0.05; done"
    process = hf.run(command, cwd=work, sandbox=True, pty=True, size=(80, 24))
    eventually(lambda: "up" in hf.logs(process.id).text)
    hf.resize(process.id, 100, 40)
    assert hf.wait(process.id, timeout=20).exit_code == 3
    assert hf.logs(process.id).text.split() == ["/dev/console", "24", "80", "up", "40", "100"]


def test_an_interactive_shell_has_job_control(hf: Client, work: Path) -> None:
    with Terminal("run", "-t", "--sandbox", "-w", str(work), "--", "bash", "--norc", "-i") as terminal:
        # Said by a child of its own: then ^C is for that child, and not for the shell that is about to start it.
        terminal.type(b"sh -c 'echo $((40 + 2)); exec sleep 60'\r")
        terminal.see("42")
        terminal.type(b"\x03")
        terminal.see("^C")
        terminal.type(b"exit 6\r")
        assert terminal.end() == 6


def test_limits_and_nice_hold_in_it(hf: Client, work: Path) -> None:
    process = hf.run("nice; sleep 60", cwd=work, sandbox=True, nice=5)
    eventually(lambda: hf.logs(process.id).text == "5\n")
    hf.kill(process.id, grace=0.1)


def test_many_starts_leave_nothing_behind(hf: Client, work: Path) -> None:
    before = inits(hf)
    processes = [hf.run("setsid sleep 60 & sleep 60", cwd=work, sandbox=True, if_running="allow") for _ in range(20)]
    assert len(inits(hf) - before) == 20
    hf.kill(all=True, grace=0.1)
    eventually(lambda: not inits(hf) - before)
    assert {hf.inspect(process.id).status for process in processes} == {"ended"}
