"""`holdfast exec`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import HoldfastError
from tests.cli.calling import Terminal, as_json, out, refusal
from tests.support import run_cli


@pytest.fixture
def server(tmp_path: Path) -> str:
    words = ("--name", "server", "-e", "COLOUR=red", "-w", str(tmp_path), "--session", "chat", "--", "sleep", "300")
    done = run_cli("run", "-d", *words, env={"FROM_CALLER": "then"})
    assert done.returncode == 0, done
    return done.stdout.decode().strip()


def test_it_has_directory_environment_and_umask_of_the_process(server: str, tmp_path: Path) -> None:
    done = run_cli("exec", "server", "--", "sh", "-c", "pwd; echo $COLOUR $FROM_CALLER", env={"FROM_CALLER": "now"})
    assert done.stdout.decode() == f"{tmp_path}\nred then\n"
    assert out("exec", "server", "-e", "COLOUR=blue", "-c", "echo $COLOUR") == "blue\n"


def test_it_is_a_process_of_its_own(server: str) -> None:
    shown = as_json("exec", "-d", "--json", "--name", "beside", "server", "-c", "echo $HOLDFAST_ID; exit 7")
    assert shown["id"] != server
    assert run_cli("wait", "beside").returncode == 7
    assert out("logs", "beside") == f"{shown['id']}\n"
    assert shown["session"] == "default"
    assert run_cli("exec", "server", "--", "sh", "-c", "exit 9").returncode == 9
    assert as_json("inspect", "--json", server)["status"] == "running"


def test_input_and_terminal_are_as_with_run(server: str) -> None:
    assert run_cli("exec", "server", "cat", input=b"piped\n").stdout == b"piped\n"
    with Terminal("exec", "server", "-it", "--", "sh", "-c", "test -t 0 && read x && echo $COLOUR $x") as terminal:
        terminal.see("detaches")
        terminal.type(b"typed\r")
        terminal.see("red typed")
        assert terminal.end() == 0


def test_it_works_after_the_end_and_after_a_crash_of_the_daemon(server: str) -> None:
    out("kill", "server")
    assert out("exec", server, "-c", "echo $COLOUR") == "red\n"
    out("daemon", "stop")
    assert out("exec", server, "-c", "echo $COLOUR") == "red\n"
    again = out("exec", "-d", server, "sleep", "300").strip()
    out("restart", again)
    assert out("exec", again, "-c", "echo $COLOUR") == "red\n"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["server"],
        ["server", "--"],
        ["nosuch", "--", "true"],
        ["server", "-c", "true", "more"],
        ["server", "--shell", "sh", "--", "true"],
        ["server", "--size", "80x24", "--", "true"],
        ["server", "--memory", "1G", "--", "true"],
        ["server", "--name", "\x1b[2J", "--", "true"],
        ["--", "\x1b", "true"],
        ["", "true"],
    ],
    ids=repr,
)
def test_what_cannot_be_meant_is_refused(server: str, words: list[str]) -> None:
    assert "\x1b" not in refusal("exec", *words)


def test_a_program_or_a_directory_that_is_not_there(server: str, tmp_path: Path) -> None:
    refusal("exec", "server", "--", "no-such-program", code=127)
    tmp_path.rmdir()
    assert str(tmp_path) in run_cli("exec", "server", "--", "true").stderr.decode()


def test_one_that_was_removed_lends_nothing(server: str) -> None:
    out("kill", "server")
    out("rm", server)
    assert "no process" in refusal("exec", server, "--", "true")


def test_a_bound_caller_cannot_use_processes_of_another_session(server: str) -> None:
    call = [sys.executable, "-m", "holdfast", "exec", server, "--", "env"]
    done = run_cli("run", "--session", "another", "--", *call)
    assert done.returncode == 125
    assert b"no process" in done.stdout and b"red" not in done.stdout
    own = run_cli("run", "--session", "chat", "--", *call)
    assert b"COLOUR=red" in own.stdout


def test_it_is_judged_like_a_start_with_the_variables_of_the_process(instance: Path) -> None:
    with holdfast.connect("chat", strict=True) as agent:
        plain = agent.run(["sleep", "300"])
        with pytest.raises(HoldfastError) as refused:
            agent.exec(plain, "rm -rf / --no-preserve-root", gate=True)
        assert refused.value.code == "command_denied"
        steered = agent.run(["sleep", "300"], env={"BASH_ENV": "/tmp/script"})
        with pytest.raises(HoldfastError) as asked:
            agent.exec(steered, ["true"], gate=True, approval_wait=0.0)
        assert "BASH_ENV" in asked.value.message
        assert agent.wait(agent.exec(plain, ["true"], gate=True).id).exit_code == 0
