"""`holdfast why`."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.calling import as_json, out, refusal, start, until_output
from tests.cli.verbs.test_top import LISTEN
from tests.support import eventually, run_cli

BIND = "import socket, sys; socket.socket().bind(('127.0.0.1', int(sys.argv[1])))"


def after_its_end(*words: str) -> str:
    process_id = start(*words)
    run_cli("wait", process_id)
    return process_id


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-c", "echo fine"], "It succeeded: exit code 0"),
        (["-c", "exit 3"], "It failed: exit code 3"),
        (["-c", "nosuchcommand"], "exit code 127 (a program was not found)"),
        (["-c", "/etc/passwd"], "exit code 126 (a program was found, but cannot be executed)"),
        (["-c", "bash -c 'kill -9 $$'; exit $?"], "exit code 137, which often means that SIGKILL"),
        (["-c", "kill -SEGV $$"], "SIGSEGV (it accessed invalid memory"),
        (["--deadline", "0.2", "sleep", "60"], "It was ended at its deadline"),
        (
            ["--restart", "always", "--restart-limit", "1", "--restart-delay", "0.01", "false"],
            "gave up after 1 restart",
        ),
    ],
)
def test_how_it_ended(words: list[str], said: str) -> None:
    assert said in out("why", after_its_end(*words))


def test_ended_on_request() -> None:
    process_id = start("--session", "mine", "sleep", "60")
    run_cli("kill", process_id, env={"HOLDFAST_SESSION": "another"})
    assert "It was ended on request of session another (SIGTERM)" in out("why", process_id)


def test_the_errors_in_its_output_and_what_to_try() -> None:
    script = "echo starting; echo 'Error: \x1b[31mno config\x1b[0m' >&2; echo 'write: No space left on device'; exit 1"
    process_id = after_its_end("--name", "broken", "-c", script)
    shown = out("why", process_id)
    assert shown.split("Errors in its output:\n")[1].split("\n\n")[0].split("\n") == [
        "  Error: no config",
        "  write: No space left on device",
    ]
    tried = shown.split("What to try:\n")[1]
    assert "disk space" in tried and "holdfast logs broken" in tried and "holdfast restart broken" in tried
    found = as_json("why", "--json", process_id)
    assert list(found) == ["process", "summary", "details", "lines", "are_errors", "port", "next"]
    assert found["are_errors"] and found["port"] is None and found["process"]["id"] == process_id


def test_the_end_of_output_without_errors() -> None:
    shown = out("why", after_its_end("-c", "seq 30; exit 4"))
    assert "The end of its output:\n" + "".join(f"  {n}\n" for n in range(23, 31)) in shown


def test_secrets_are_masked() -> None:
    secret = "sk-" + "a1b2c3d4" * 5
    shown = out("why", after_its_end("--env", f"API_KEY={secret}", "-c", 'echo "error: key $API_KEY"; exit 1'))
    assert "error: key" in shown and secret not in shown


@pytest.fixture
def foreign_port() -> Iterator[int]:
    """A port on which a program listens that holdfast does not run."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def test_a_port_that_another_process_of_holdfast_holds() -> None:
    holder = start("--name", "web", "--", sys.executable, "-c", LISTEN)
    until_output(holder)
    port = out("logs", holder).strip()
    process_id = after_its_end("--", sys.executable, "-c", BIND, port)
    assert f"Port {port} is held by `web` ({holder})" in out("why", process_id)
    found = as_json("why", "--json", process_id)
    assert (found["port"]["process"], found["port"]["name"], found["port"]["is_held"]) == (holder, "web", True)
    assert "holdfast kill web" in found["next"][0]
    out("kill", holder)
    eventually(lambda: "no process listens on it now" in out("why", "--json", after_its_end("-c", node_error(port))))


def node_error(port: str) -> str:
    return f"echo 'Error: listen EADDRINUSE: address already in use :::{port}'; exit 1"


def test_a_port_that_another_program_holds(foreign_port: int) -> None:
    pid = as_json("why", "--json", after_its_end("-c", node_error(str(foreign_port))))["port"]["pid"]
    assert Path(f"/proc/{pid}/exe").samefile(sys.executable)
    assert f"Port {foreign_port} is held by another program: " in out("why", as_json("ps", "-a", "--json")[-1]["id"])


def test_a_caller_that_is_bound_to_its_session_does_not_see_the_holder_of_another() -> None:
    holder = start("--name", "hidden-web", "--session", "one", "--", sys.executable, "-c", LISTEN)
    until_output(holder)
    port = out("logs", holder).strip()
    process_id = after_its_end("--session", "two", "-c", node_error(port))
    call = f"{sys.executable} -m holdfast why {process_id}"
    shown = out("logs", after_its_end("--session", "two", "-c", call))
    assert f"Port {port} is held by another program" in shown
    assert "hidden-web" not in shown and holder not in shown


def test_of_running_ones_what_they_wait_for() -> None:
    start("--name", "asking", "-t", "-c", "read -p 'name? ' x")
    eventually(lambda: "It has waited for input" in out("why", "asking"))
    assert "name?" in out("why", "asking") and "holdfast attach asking" in out("why", "asking")
    start("--name", "idle", "--stall", "0.1", "sleep", "60")
    eventually(lambda: "It is stalled: no output and no CPU use" in out("why", "idle"))
    start("--name", "unready", "--ready-port", "1", "sleep", "60")
    assert "It is not ready (--ready-port 1)" in out("why", "unready")
    assert out("why", "unready").split("\n")[3].startswith("It runs, for ")


def test_hostile_output_and_bad_values() -> None:
    shown = out("why", after_its_end("-c", r"printf 'error \033]0;owned\007\033[2J x\n'; exit 1"))
    assert "\x1b" not in shown and "\x07" not in shown
    refusal("why")
    refusal("why", "nobody")
    refusal("why", "a", "b")
    assert as_json("why", "--json", "nobody", code=125)["error"]["code"] == "not_found"


def test_no_terminal_is_needed_and_a_closed_stdout_is_no_traceback() -> None:
    process_id = after_its_end("-c", "exit 3")
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m holdfast why {process_id} >&-"], capture_output=True, check=False
    )
    assert done.returncode == 125 and b"Traceback" not in done.stderr
