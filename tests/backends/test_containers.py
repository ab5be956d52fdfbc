"""The command line with processes in containers of real engines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.calling import Terminal, as_json, out, refusal, start
from tests.contracts.engines import IMAGE, TestEngine, engine
from tests.support import end_instance, eventually, run_cli

COUNT = "i=0; while [ $i -lt 400 ]; do i=$((i + 1)); echo line $i; sleep 0.01; done; exit 7"
COUNTED = "".join(f"line {number}\n" for number in range(1, 401))


@pytest.fixture(scope="module", params=["podman", pytest.param("docker", marks=pytest.mark.full)])
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestEngine]:
    """The engine, and an instance whose daemon finds it."""
    own = engine(request.param)
    own.remove_all()
    home = tmp_path_factory.mktemp("containers")
    (home / "config.toml").write_text(f'[backends.{own.kind}]\nnetwork = "none"\nimage = "{IMAGE}"\n')
    with pytest.MonkeyPatch.context() as patch:
        for name, value in own.environ.items():
            patch.setenv(name, value)
        patch.setenv("HOLDFAST_HOME", str(home))
        patch.delenv("HOLDFAST_SESSION", raising=False)
        yield own
        end_instance(str(home))
        own.remove_all()


@pytest.fixture(autouse=True)
def clean(own: TestEngine) -> Iterator[None]:
    """Nothing of one test runs in the next, and none of its notifications is left."""
    yield
    run_cli("kill", "--all", "--grace", "0.2")
    run_cli("inbox", "--ack", "--limit", "1000")


@pytest.fixture
def there(own: TestEngine) -> tuple[str, ...]:
    """The options that start a process in a container."""
    return ("--backend", own.kind)


def status(process: str) -> dict[str, Any]:
    shown = as_json("inspect", "--json", process)
    assert isinstance(shown, dict)
    return shown


def ended(process: str, timeout: float = 30.0) -> dict[str, Any]:
    return eventually(lambda: (shown := status(process))["status"] == "ended" and shown, timeout=timeout)


def notices(process: str) -> list[str]:
    return [notice["kind"] for notice in as_json("inbox", "--json", "--limit", "100") if notice["process"] == process]


def container(own: TestEngine) -> str:
    (name,) = own.run("ps", "--format", "{{.Names}}").split()
    return name


def kill_daemon() -> None:
    os.kill(as_json("daemon", "status", "--json")["pid"], signal.SIGKILL)


def test_a_command_runs_in_the_foreground(there: tuple[str, ...]) -> None:
    done = run_cli(
        "run", *there, "--env", "WORD=a b", "--", "sh", "-c", 'cat; echo "$WORD $HOME"; exit 3', input=b"in\n"
    )
    assert (done.returncode, done.stdout) == (3, b"in\na b /root\n")


def test_nothing_of_the_instance_is_visible_in_the_environment(there: tuple[str, ...]) -> None:
    names = {line.partition("=")[0] for line in out("run", *there, "--", "env").splitlines()}
    assert {"HOLDFAST_ID", "HOLDFAST_SESSION"} <= names
    assert not {name for name in names if name.startswith(("HOLDFAST_HOME", "CONTAINERS_", "DOCKER_", "LD_"))}


def test_a_background_process_is_listed_followed_and_killed(own: TestEngine, there: tuple[str, ...]) -> None:
    process = start(*there, "--name", "tree", "--", "sh", "-c", "setsid sleep 1000 & echo up; sleep 1000; true")
    command = [sys.executable, "-m", "holdfast", "logs", "-f", "tree"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"up\n"
        shown = status("tree")
        assert (shown["backend"], shown["status"]) == (own.kind, "running")
        eventually(lambda: sorted(one["name"] for one in status("tree")["tree"]) == ["sh", "sleep", "sleep"])
        assert run_cli("kill", "tree").returncode == 0
        follower.wait(20)
    assert ended(process)["signal"] == signal.SIGTERM
    assert "sleep" not in own.run("exec", container(own), "ps", "-o", "args")


def test_a_shell_on_a_terminal_is_attached_resized_and_shown(there: tuple[str, ...]) -> None:
    process = start("-t", *there, "--", "sh")
    with Terminal("attach", process, cols=90, rows=20) as terminal:
        eventually(lambda: status(process)["cols"] == 90)
        terminal.type(b"echo $((6 * 7)); stty size\r")
        terminal.see("42")
        terminal.see("20 90")
        terminal.resize(70, 15)
        eventually(lambda: status(process)["cols"] == 70)
        terminal.type(b"stty size\r")
        terminal.see("15 70")
        terminal.type(b"\x1d")
        assert terminal.end() == 0
    assert "15 70" in out("screen", process)
    run_cli("send", process, "exit 5")
    assert ended(process)["exit_code"] == 5


def test_a_line_that_is_watched_for_is_announced(there: tuple[str, ...]) -> None:
    process = start(
        *there, "--watch", "needle", "--notify=never", "--", "sh", "-c", "echo hay; echo a needle; sleep 1000"
    )
    eventually(lambda: notices(process))
    assert notices(process) == ["watch_match"]


def test_a_port_within_the_container_makes_a_process_ready(there: tuple[str, ...]) -> None:
    process = start(*there, "--ready-port", "8099", "--", "sh", "-c", "sleep 0.3; nc -l -p 8099 -e cat")
    assert run_cli("wait", "--until", "ready", process).returncode == 0


def test_a_deadline_ends_the_process_in_the_container(there: tuple[str, ...]) -> None:
    shown = ended(start(*there, "--deadline", "0.5", "--", "sleep", "1000"))
    assert shown["reason"] == "deadline"


def test_a_process_that_fails_is_restarted_in_its_container(there: tuple[str, ...]) -> None:
    options = ("--restart", "on-failure", "--restart-limit", "2", "--restart-delay", "0.1")
    process = start(*there, *options, "--", "sh", "-c", "echo run; exit 1")
    eventually(lambda: out("logs", process).count("run\n") == 3)
    assert ended(process)["exit_code"] == 1


def test_what_the_container_cannot_do_is_refused_with_the_reason(own: TestEngine, there: tuple[str, ...]) -> None:
    assert "/no/such" in refusal("run", *there, "--cwd", "/no/such", "--", "true")
    limited = refusal("run", *there, "--memory", "100M", "--", "true")
    assert "memory" in limited and f"[backends.{own.kind}]" in limited
    assert "no-such-program" in refusal("run", *there, "--", "no-such-program", code=127)
    assert "host" in refusal("run", *there, "--host", "me@there", "--", "true")


def test_nothing_is_lost_when_the_daemon_is_killed(there: tuple[str, ...]) -> None:
    process = start(*there, "--notify", "--", "sh", "-c", COUNT)
    eventually(lambda: "line 50\n" in out("logs", process))
    kill_daemon()
    eventually(lambda: "line 150\n" in out("logs", process))
    kill_daemon()
    assert run_cli("wait", process).returncode == 7
    assert out("logs", process) == COUNTED
    assert ended(process)["exit_code"] == 7
    assert notices(process) == []  # the wait answered it


def test_a_process_that_ended_without_a_daemon_has_one_notification(there: tuple[str, ...]) -> None:
    process = start(*there, "--notify", "--", "sh", "-c", COUNT)
    kill_daemon()
    assert as_json("inbox", "--json", "--wait", "30", "--for", process)
    assert out("logs", process) == COUNTED
    assert notices(process) == ["completion"]
    assert ended(process)["exit_code"] == 7


def test_a_container_that_is_removed_ends_its_processes(own: TestEngine, there: tuple[str, ...]) -> None:
    process = start(*there, "--notify", "--", "sh", "-c", "echo up; sleep 1000")
    eventually(lambda: "up\n" in out("logs", process))
    own.run("rm", "--force", container(own))
    removed = time.monotonic()
    shown = ended(process)
    assert time.monotonic() - removed < 20.0
    assert shown["signal"] == signal.SIGKILL or shown["reason"] == "lost"
    assert out("logs", process) == "up\n"
    assert len(eventually(lambda: notices(process))) == 1
    assert out("run", *there, "--", "echo", "again") == "again\n"


def test_one_container_serves_all_processes_of_a_session(own: TestEngine, there: tuple[str, ...]) -> None:
    out("run", *there, "--", "touch", "/tmp/mine")
    kill_daemon()
    assert out("run", *there, "--", "ls", "/tmp").split() == ["mine"]
    assert run_cli("run", *there, "--task", "other", "--", "ls", "/tmp/mine").returncode == 1
    assert len(own.run("ps", "--all", "--quiet").split()) == 2
    kill_daemon()
    out("backends", "stop", own.kind)
    assert own.run("ps", "--all", "--quiet") == ""


def test_the_engine_is_listed_with_its_version(own: TestEngine) -> None:
    (shown,) = [one for one in as_json("backends", "--json") if one["name"] == own.kind]
    assert shown["state"] == "ready"
