"""`holdfast run` and `holdfast wait` on a terminal: the detach key, a closed terminal, ^C, progress and the bell."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.cli.calling import Terminal, as_json, out, start
from tests.support import eventually, never, run_cli

DETACH = b"\x1d"
INTERRUPT = b"\x03"


@pytest.fixture(autouse=True)
def drawable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")


def status(name: str) -> str:
    shown: str = as_json("inspect", "--json", name)["status"]
    return shown


def test_the_detach_key_leaves_the_command_running_and_says_how_to_come_back() -> None:
    with Terminal("run", "--name", "web", "-c", "echo up; sleep 100") as terminal:
        terminal.see("up")
        terminal.type(DETACH)
        assert terminal.end() == 0
        assert "still runs: holdfast logs -f web" in terminal.rest()
        assert terminal.is_as_before
    assert status("web") == "running"


def test_the_detach_key_works_while_input_is_passed_on_and_after_the_job_was_stopped() -> None:
    with Terminal("run", "--stdin", "--name", "echo", "-c", "echo up; cat") as terminal:
        terminal.see("up")
        terminal.type(b"a line\r")
        terminal.see("a line\r\na line")
        terminal.process.send_signal(signal.SIGSTOP)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.type(DETACH)
        assert terminal.end() == 0
    assert status("echo") == "running"


def test_the_detach_key_can_be_another_or_none() -> None:
    with Terminal("run", "--detach-key", "ctrl-q", "--name", "other", "-c", "echo up; sleep 100") as terminal:
        terminal.see("up")
        terminal.type(b"\x11")
        assert terminal.end() == 0
    with Terminal("run", "--detach-key", "none", "-c", "echo up; sleep 100") as terminal:
        terminal.see("up")
        terminal.type(DETACH)
        terminal.see("^]")
        assert terminal.process.poll() is None
        terminal.type(INTERRUPT)
        assert terminal.end() == 130
    with Terminal("run", "--detach-key", "x", "true") as terminal:
        terminal.see("--detach-key cannot be")
        assert terminal.end() == 125


def test_the_end_of_a_command_that_was_detached_from_is_notified() -> None:
    with Terminal("run", "--stdin", "--name", "left", "-c", "echo up; read line; exit 3") as terminal:
        terminal.see("up")
        terminal.type(DETACH)
        assert terminal.end() == 0
    out("send", "left", "go")
    assert [one["data"]["name"] for one in as_json("inbox", "--for", "left", "--wait", "20", "--json")] == ["left"]


@pytest.mark.parametrize("options", [[], ["--stdin"], ["-t"]], ids=" ".join)
def test_a_closed_terminal_leaves_the_command_running_and_the_next_call_says_so_once(options: list[str]) -> None:
    with Terminal("run", *options, "--name", "web", "-c", "echo up; cat; sleep 100") as terminal:
        terminal.see("up")
        terminal.close()
        assert terminal.end() == 129
    assert status("web") == "running"
    assert b"terminal" not in run_cli("ps").stderr  # not on a terminal
    with Terminal("ps", env={**os.environ, "HOLDFAST_SESSION": "other"}) as other:
        assert "terminal" not in other.rest()
    with Terminal("ps") as first:
        way = "attach" if "-t" in options else "logs -f"
        assert f"holdfast: web still runs since its terminal closed: holdfast {way} web" in first.rest()
    with Terminal("ps") as second:
        assert "terminal" not in second.rest()


def test_a_call_that_names_the_process_does_not_say_it_and_an_ended_one_is_forgotten(instance: Path) -> None:
    with Terminal("run", "--name", "web", "-c", "echo up; sleep 100") as terminal:
        terminal.see("up")
        terminal.close()
        assert terminal.end() == 129
    with Terminal("kill", "web") as kill:
        assert "terminal" not in kill.rest()
    assert list((instance / "closed-terminals").iterdir()) == []


def test_nohup_keeps_a_foreground_run_on_its_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # nohup.out is written here
    whole = ["nohup", sys.executable, "-m", "holdfast", "run", "-c", "sleep 100"]
    with Terminal(whole=whole, env={**os.environ, "HOME": str(tmp_path)}) as terminal:
        eventually(lambda: as_json("ps", "--json"))
        terminal.process.send_signal(signal.SIGHUP)
        never(lambda: terminal.process.poll() is not None, within=0.3)


@pytest.mark.parametrize(
    ("options", "command"),
    [
        ([], "sleep 100"),
        (["-t"], "sleep 100"),
        (["--restart-delay", "60"], "exit 1"),
        (["-t", "--restart-delay", "60"], "exit 1"),
        (["--stdin"], "cat"),
    ],
)
def test_an_interrupt_ends_a_restarting_run_for_good(options: list[str], command: str) -> None:
    with Terminal("run", "--restart", "always", *options, "--name", "again", "-c", f"echo up; {command}") as terminal:
        terminal.see("up")
        if "exit" in command:
            eventually(lambda: as_json("inspect", "--json", "again")["restart_at"])
        terminal.type(INTERRUPT)
        assert terminal.end() in (1, 130, 143)
    assert status("again") == "ended"


def test_a_program_on_a_terminal_that_handles_the_interrupt_goes_on() -> None:
    command = "trap 'echo handled' INT; echo up; while :; do sleep 0.1; done"
    with Terminal("run", "-t", "--restart", "always", "--name", "own", "-c", command) as terminal:
        terminal.see("up")
        terminal.type(INTERRUPT)
        terminal.see("handled")
        terminal.type(DETACH)
        assert terminal.end() == 0
    assert (status("own"), as_json("inspect", "--json", "own")["restarts"]) == ("running", 0)


def test_a_wait_shows_for_how_long_and_the_last_line_and_clears_it() -> None:
    start("--name", "slow", "--stdin", "-c", "echo first; printf 'last \\033[2Jline\\n'; read x; exit 3")
    with Terminal("wait", "slow", cols=80) as terminal:
        terminal.see("holdfast: 1s, waiting for slow: last line")
        terminal.see("holdfast: 2s, waiting for slow: last line")
        out("send", "slow", "go")
        assert terminal.end() == 3
        rest = terminal.rest()
    assert "\r\x1b[Kholdfast: proc_" in rest and "exit 3" in rest
    assert "\x1b[2J" not in rest and "\a" not in rest


def test_a_wait_for_several_names_those_that_are_left() -> None:
    start("--name", "one", "true")
    for name in ("two", "three"):
        start("--name", name, "--stdin", "-c", "read x")
    with Terminal("wait", "one", "two", "three", cols=80) as terminal:
        terminal.see("waiting for two, three (1 of 3 done)")
        out("send", "two", "go")
        terminal.see("waiting for three (2 of 3 done)")
        out("send", "three", "go")
        assert terminal.end() == 0


def test_a_line_that_is_too_long_is_cut() -> None:
    start("--name", "wide", "-c", "echo " + "x" * 500 + "; sleep 100")
    with Terminal("wait", "wide", cols=40) as terminal:
        line = terminal.see("…").decode().rpartition("\x1b[K")[2]
        assert len(line) <= 40
        terminal.type(INTERRUPT)
        assert terminal.end() == 130
        assert terminal.rest().endswith("\r\x1b[K")


def test_the_line_of_a_wait_does_not_start_a_daemon_that_was_stopped(instance: Path) -> None:
    start("--name", "slow", "sleep", "100")
    with Terminal("wait", "slow") as terminal:
        terminal.see("waiting for slow")
        out("daemon", "stop")
        terminal.see("s\r")  # it goes on, and does not know for what
        never((instance / "daemon.sock").exists, within=1.5)


def test_a_wait_in_the_background_of_a_shell_draws_no_line() -> None:
    process_id = start("sleep", "2.5")
    script = f"set -m; {sys.executable} -m holdfast wait {process_id} & wait"
    with Terminal(whole=["bash", "-c", script]) as terminal:
        shown = terminal.rest()
    assert "exit 0" in shown and "waiting for" not in shown


def test_a_long_wait_ends_with_a_bell() -> None:
    start("--name", "slow", "--stdin", "-c", "read x")
    with Terminal("wait", "slow", env={**os.environ, "HOLDFAST_BELL": "1"}) as terminal:
        terminal.see("waiting for slow")
        out("send", "slow", "go")
        assert "\a" in terminal.rest()


@pytest.mark.parametrize("how", ["dumb", "--json"])
def test_a_dumb_terminal_and_json_get_neither_line_nor_bell(how: str) -> None:
    process_id = start("sleep", "2.5")
    env = {**os.environ, "HOLDFAST_BELL": "1", **({"TERM": "dumb"} if how == "dumb" else {})}
    with Terminal("wait", *(["--json"] if how == "--json" else []), process_id, env=env) as terminal:
        shown = terminal.rest()
    assert "waiting for" not in shown and "\a" not in shown and "\x1b" not in shown
