"""Processes on a host over SSH, as a user has them: the real command, a real daemon, a real server."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calling import Terminal
from tests.contracts.sshd import SshServer, shared_cache
from tests.contracts.test_ssh import master_pid, serving
from tests.support import end_instance, eventually

COUNT = "for i in $(seq 1 300); do echo line $i; sleep 0.01; done; exit 7"
ALL_LINES = "".join(f"line {number}\n" for number in range(1, 301))


class Host:
    """An instance with a host as its backend `far`."""

    def __init__(self, directory: Path) -> None:
        self.server = SshServer()
        self.home, self.there = directory / "home", directory / "there"
        self.home.mkdir(mode=0o700)
        table = {"kind": "ssh", **self.server.options, "directory": str(self.there)}
        lines = [f"{name} = {json.dumps(value)}" for name, value in table.items()]
        (self.home / "config.toml").write_text("\n".join(["[backends.far]", *lines]), encoding="utf-8")
        (self.home / "runtimes").symlink_to(shared_cache())

    def __call__(self, *arguments: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, **self.server.environ, "HOLDFAST_HOME": str(self.home)}
        command = [shutil.which("holdfast", path=os.path.dirname(sys.executable)) or "holdfast", *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environ, timeout=90, stdin=subprocess.DEVNULL, cwd="/usr"
        )
        assert code is None or done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return done

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json").stdout)

    def start(self, *arguments: str) -> str:
        return self("run", "-d", "--backend", "far", *arguments).stdout.strip()

    def inspect(self, process: str) -> dict[str, Any]:
        return dict(self.json("inspect", process))

    def daemon(self) -> int:
        return int(self.json("daemon", "status")["pid"])

    def close(self) -> None:
        end_instance(str(self.home))
        end_instance(str(self.there))
        self.server.close()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    host = Host(tmp_path_factory.mktemp("ssh"))
    yield host
    host.close()


def expect_all(host: Host, process: str) -> None:
    eventually(lambda: host.inspect(process)["status"] == "ended")
    assert host.inspect(process)["exit_code"] == 7
    assert host("logs", process).stdout == ALL_LINES
    (notice,) = [one for one in host.json("inbox", "--wait", "5") if one["process"] == process]
    assert notice["data"]["exit_code"] == 7


def test_a_command_runs_there_in_the_home_directory_and_ends_with_its_code(host: Host) -> None:
    done = host("run", "--backend", "far", "--", "sh", "-c", "pwd; env; echo oops >&2; exit 3", code=3)
    assert os.path.isdir(done.stdout.splitlines()[0])
    assert done.stdout.splitlines()[0] != "/usr"
    assert "HOLDFAST_HOME=" not in done.stdout
    assert "SSH_CONNECTION=" not in done.stdout


def test_a_directory_that_is_not_there_is_refused(host: Host) -> None:
    done = host("run", "--backend", "far", "--cwd", "/no/such/directory", "--", "true", code=None)
    assert done.returncode != 0 and "/no/such/directory" in done.stderr and "backend far" in done.stderr


def test_the_name_of_a_backend_in_place_of_a_host_is_noticed(host: Host) -> None:
    assert "--backend far" in host("run", "--host", "far", "--", "true", code=125).stderr


def test_nothing_is_lost_when_daemon_and_link_are_killed(host: Host) -> None:
    process = host.start("--", "sh", "-c", COUNT)
    eventually(lambda: "line 20" in host("logs", process).stdout)
    os.kill(host.daemon(), signal.SIGKILL)
    eventually(lambda: "line 60" in host("logs", process).stdout)
    for pid in [master_pid(host.server), *serving(host.server)]:
        with suppress(ProcessLookupError):  # it ends with the one before
            os.kill(pid, signal.SIGKILL)
    expect_all(host, process)


def test_a_process_is_found_again_whose_daemon_died_right_after_the_start(host: Host) -> None:
    daemon = host.daemon()
    process = host.start("--", "sh", "-c", COUNT)
    os.kill(daemon, signal.SIGKILL)
    eventually(lambda: process in host("ps", "-a").stdout)
    expect_all(host, process)


def test_a_process_that_ended_while_no_daemon_knew_it_is_found(host: Host) -> None:
    host("ps")  # starts the daemon
    daemon = host.daemon()
    process = host.start("--", "sh", "-c", "echo late; exit 7")
    os.kill(daemon, signal.SIGKILL)
    eventually(lambda: list(host.there.glob(f"*/done/{process}")))
    eventually(lambda: process in host("ps", "-a").stdout)
    eventually(lambda: host.inspect(process)["exit_code"] == 7)
    assert host("logs", process).stdout == "late\n"


def test_a_process_is_unreachable_and_not_ended_while_its_host_is_away(host: Host) -> None:
    process = host.start("--", "sh", "-c", COUNT)
    sessions = serving(host.server)
    host.server.end()
    for pid in sessions:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: host.inspect(process)["status"] == "unreachable")
    assert not [one for one in host.json("inbox") if one["process"] == process]
    done = host("run", "--backend", "far", "--", "true", code=None)
    assert done.returncode != 0 and "refused" in done.stderr and len(done.stderr.splitlines()) == 1
    host.server.begin()
    expect_all(host, process)


def test_input_terminal_and_screen_work_there(host: Host) -> None:
    process = host.start("-t", "--", "sh", "-c", "stty size; read line; echo got $line; exec sleep 1000")
    host("send", process, "hello\n")
    eventually(lambda: "got hello" in host("screen", process).stdout)
    host("kill", process)
    assert host.inspect(process)["status"] == "ended"


@pytest.mark.full
@pytest.mark.parametrize("verb", ["run", "attach"])
def test_a_terminal_stays_attached_while_the_host_is_away(host: Host, verb: str) -> None:
    command = [
        "-t",
        "--name",
        f"tty-{verb}",
        "--",
        "sh",
        "-c",
        "stty -echo; echo up; while read line; do echo got $line; done; sleep 1000",
    ]
    words = ["run", "--backend", "far", *command] if verb == "run" else ["attach", host.start(*command)]
    environ = {**os.environ, **host.server.environ, "HOLDFAST_HOME": str(host.home)}
    with Terminal(*words, env=environ) as terminal:
        terminal.see("up")
        process = host.inspect(f"tty-{verb}")["id"]
        sessions = serving(host.server)
        host.server.end()
        for pid in sessions:
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: host.inspect(process)["status"] == "unreachable")
        terminal.type(b"one\r")
        terminal.see("does not answer")
        terminal.type(b"two\r")
        host.server.begin()
        if verb == "run":  # how much it has read is known from the start
            terminal.see("got one")
        terminal.see("got two")
        terminal.type(b"\x1d")
        assert "still runs" in terminal.rest()
        assert terminal.process.returncode == 0
    assert host("logs", process).stdout.count("got two") == 1
    host("kill", process)


def test_watch_readiness_search_and_restart_work_there(host: Host) -> None:
    process = host.start(
        "--ready-log", "up now", "--watch", "needle", "--", "sh", "-c", "echo up now; echo a needle; sleep 1000"
    )
    host("wait", process, "--for", "ready", code=None)
    eventually(lambda: host.inspect(process)["ready"] is True)
    assert "needle" in host("search", "needle", code=None).stdout + host("logs", process).stdout
    assert any("needle" in json.dumps(one) for one in host.json("inbox", "--wait", "5"))
    host("restart", process)
    eventually(lambda: host("logs", process).stdout.count("up now") == 2)
    host("kill", process)


def test_a_tree_with_a_session_of_its_own_is_killed_there(host: Host) -> None:
    process = host.start("--", "sh", "-c", "setsid sleep 1234 & sleep 1234 & wait")
    eventually(lambda: len(host.inspect(process).get("members") or [1, 2, 3]) == 3)
    host("kill", process)
    assert host.inspect(process)["status"] == "ended"


def test_a_deadline_ends_a_process_there(host: Host) -> None:
    process = host.start("--deadline", "1", "--", "sleep", "1000")
    eventually(lambda: host.inspect(process)["reason"] == "deadline")


def test_usage_is_measured_there(host: Host) -> None:
    process = host.start("--", "sh", "-c", "while :; do :; done")
    eventually(lambda: (host.inspect(process).get("cpu_seconds") or 0) > 0)
    host("kill", process)


def test_a_forgotten_process_leaves_nothing_here_and_there(host: Host) -> None:
    process = host.start("--", "printf", "x")
    eventually(lambda: host.inspect(process)["status"] == "ended")
    assert list(host.there.glob(f"*/*/{process}"))
    host("rm", process)
    assert not list(host.there.glob(f"*/*/{process}"))
    assert not list(host.home.glob(f"places/*/*/*/{process}"))
