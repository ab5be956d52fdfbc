"""What a process is told before it is signalled."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from holdfast.client.sync import Client
from tests.daemon.acting import kill_daemon, log_text
from tests.support import eventually

#: Says how it was asked to end.
POLITE = "trap 'echo got TERM; exit 9' TERM; echo up; until [ -e bye ]; do sleep 0.02; done; echo bye; exit 0"


def test_it_runs_before_the_signals_in_the_world_of_the_process(hf: Client, tmp_path: Path) -> None:
    stop_cmd = "echo $A $HOLDFAST_ID $HOLDFAST_PID $PWD > told; sleep 0.2; touch bye; sleep 0.2"
    process = hf.run(POLITE, cwd=tmp_path, env={"A": "1"}, stop_cmd=stop_cmd)
    hf.wait(process.id, until="output", after=0, timeout=60)
    (result,) = hf.kill(process.id)
    assert (result.status, result.reason, result.exit_code, result.forced) == ("ended", "killed", 0, False)
    assert (tmp_path / "told").read_text().split() == ["1", process.id, str(process.pid), str(tmp_path)]
    assert hf.logs(process.id).text == "up\nbye\n", "its own output is in no log of the process"


def test_the_signals_follow_when_it_is_done(hf: Client, tmp_path: Path) -> None:
    process = hf.run(POLITE, cwd=tmp_path, stop_cmd="touch told")
    hf.wait(process.id, until="output", after=0, timeout=60)
    began = time.monotonic()
    (result,) = hf.kill(process.id)
    assert (result.exit_code, (tmp_path / "told").exists()) == (9, True)
    assert time.monotonic() - began < 9, "not the grace of 10 s"


def test_it_is_bounded_by_the_grace_and_said_to_have_failed(hf: Client, home: Path, tmp_path: Path) -> None:
    process = hf.run(POLITE, cwd=tmp_path, stop_cmd="echo $$ > pid; sleep 60; touch never")
    hf.wait(process.id, until="output", after=0, timeout=60)
    (result,) = hf.kill(process.id, grace=0.5)
    assert (result.status, result.exit_code) == ("ended", 9)
    assert f"stop-cmd-failed process={process.id}" in log_text(home)
    eventually(lambda: not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists())


def test_one_that_fails_is_in_the_log_with_what_it_said(hf: Client, home: Path, tmp_path: Path) -> None:
    process = hf.run(POLITE, cwd=tmp_path, stop_cmd="echo no such server >&2; exit 3")
    hf.wait(process.id, until="output", after=0, timeout=60)
    assert hf.kill(process.id)[0].exit_code == 9
    assert "no such server" in log_text(home)
    assert "no such server" not in hf.logs(process.id).text


@pytest.mark.parametrize("how", ["restart", "session", "deadline"])
def test_the_stop_command_runs_at_every_end_with_a_grace_period(hf: Client, tmp_path: Path, how: str) -> None:
    process = hf.run(
        POLITE,
        cwd=tmp_path,
        stop_cmd="echo told >> told",
        session="s",
        lifetime="session",
        deadline=0.5 if how == "deadline" else None,
    )
    hf.wait(process.id, until="output", after=0, timeout=60)
    if how == "restart":
        hf.restart(process.id)
    elif how == "session":
        hf.end_session("s")
    eventually(lambda: (tmp_path / "told").exists() and (tmp_path / "told").read_text() == "told\n")


def test_several_who_kill_at_once_run_it_once(hf: Client, tmp_path: Path) -> None:
    process = hf.run(POLITE, cwd=tmp_path, stop_cmd="echo told >> told; sleep 0.3; touch bye; sleep 0.2")
    hf.wait(process.id, until="output", after=0, timeout=60)
    link = hf.open_link()
    rids = {link.ask("kill", {"processes": [process.id]}) for _ in range(5)}
    while rids:
        rids -= {answer.rid for answer in link.receive(20)}
    link.close()
    assert (tmp_path / "told").read_text() == "told\n"
    assert hf.inspect(process.id).exit_code == 0


def test_force_does_not_wait_for_it(hf: Client, tmp_path: Path) -> None:
    process = hf.run("trap '' TERM; echo up; while :; do sleep 0.1; done", cwd=tmp_path, stop_cmd="touch told")
    hf.wait(process.id, until="output", after=0, timeout=60)
    assert hf.kill(process.id, grace=0)[0].forced
    assert not (tmp_path / "told").exists()


def test_an_end_during_it_was_asked_for_and_is_not_followed_by_a_restart(hf: Client, tmp_path: Path) -> None:
    options = {"restart": "always", "restart_delay": 0.01, "cwd": tmp_path}
    process = hf.run(POLITE, stop_cmd="touch bye; sleep 0.5", **options)  # type: ignore[arg-type]
    hf.wait(process.id, until="output", after=0, timeout=60)
    (result,) = hf.kill(process.id)
    assert (result.reason, result.exit_code, hf.inspect(process.id).restarts) == ("killed", 0, 0)


def test_a_crash_of_the_daemon_during_it_does_not_stop_the_end(hf: Client, tmp_path: Path) -> None:
    process = hf.run(POLITE, cwd=tmp_path, stop_cmd="touch told; sleep 2")
    hf.wait(process.id, until="output", after=0, timeout=60)
    link = hf.open_link()
    link.ask("kill", {"processes": [process.id], "grace": 1.0})
    eventually((tmp_path / "told").exists)
    kill_daemon(hf)
    link.close()
    ended = hf.wait(process.id, timeout=20)
    assert (ended.reason, ended.exit_code, ended.killed_by) == ("killed", 9, "tests")
