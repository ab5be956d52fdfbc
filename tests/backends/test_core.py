"""Processes in a place of a backend, which another package brings: a second keeper on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import end_instance, eventually, never

HERE = Path(__file__).parent
COUNT = "for i in $(seq 1 200); do echo line $i; sleep 0.01; done; exit 7"


class Instance:
    """An instance with the backend `next`, as an installed package brings it."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.signpost = directory / "there"
        self.signpost.mkdir()
        (self.signpost / "signpost").touch()
        self.home.mkdir(mode=0o700)
        (self.home / "config.toml").write_text(
            f'[backends.next]\nkind = "neighbour"\nsignpost = "{self.signpost}"\n', encoding="utf-8"
        )
        venv.EnvBuilder(symlinks=True).create(directory / "venv")
        (packages,) = (directory / "venv").glob("lib/python*/site-packages")
        found = [path for path in sys.path if path.endswith(("site-packages", "src"))]
        (packages / "there.pth").write_text("\n".join([str(HERE / "neighbour"), *found]), encoding="utf-8")
        self.python = str(directory / "venv/bin/python")

    def __call__(self, *arguments: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "HOLDFAST_HOME": str(self.home), "CALLER": "secret of the caller"}
        command = [self.python, "-m", "holdfast", *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environ, timeout=60, stdin=subprocess.DEVNULL, cwd="/usr"
        )
        assert code is None or done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return done

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json").stdout)

    def start(self, *arguments: str) -> str:
        return self("run", "-d", "--backend", "next", *arguments).stdout.strip()

    def status(self, process: str) -> str:
        return str(self.json("inspect", process)["status"])

    def place(self) -> dict[str, Any]:
        (found,) = next(one for one in self.json("backends") if one["name"] == "next")["places"]
        return dict(found)

    def keepers(self) -> list[int]:
        """Keeper and anchor of the place."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = Path("/proc", pid, "cmdline").read_bytes()
            except OSError:
                continue
            if str(self.home / "places").encode() in words and (b"holdfast: keeper" in words or b"anchor" in words):
                found.append(int(pid))
        return found

    def kill_keepers(self) -> None:
        for pid in self.keepers():
            os.kill(pid, signal.SIGKILL)

    def daemon(self) -> int:
        return int(self.json("daemon", "status")["pid"])


@pytest.fixture
def hf(tmp_path: Path) -> Iterator[Instance]:
    instance = Instance(tmp_path)
    yield instance
    end_instance(str(instance.home))
    for pid in instance.keepers():
        os.kill(pid, signal.SIGKILL)


def test_a_command_runs_there_with_the_directory_and_environment_of_the_place(hf: Instance) -> None:
    done = hf("run", "--backend", "next", "--env", "GIVEN=here", "--", "sh", "-c", "pwd; env; exit 3", code=3)
    lines = done.stdout.splitlines()
    assert lines[0] == "/"
    assert "FLOWERS=roses" in lines
    assert "GIVEN=here" in lines
    assert not any(line.startswith(("CALLER=", "HOLDFAST_HOME=")) for line in lines)
    (process,) = hf.json("ps", "-a")
    assert (process["backend"], process["cwd"], process["exit_code"]) == ("next", "/", 3)
    assert hf.place()["state"] == "connected"


def test_processes_of_another_task_run_in_another_place(hf: Instance) -> None:
    first, second = hf.start("--", "sleep", "1000"), hf.start("--task", "other", "--", "sleep", "1000")
    hf.start("--", "sleep", "1001")
    places = next(one for one in hf.json("backends") if one["name"] == "next")["places"]
    assert sorted((place["task"], place["processes"]) for place in places) == [("default", 2), ("other", 1)]
    hf("kill", first, second)


def test_nothing_is_lost_when_the_daemon_is_killed(hf: Instance) -> None:
    process = hf.start("--name", "count", "--", "sh", "-c", COUNT)
    eventually(lambda: "line 20" in hf("logs", process).stdout)
    os.kill(hf.daemon(), signal.SIGKILL)
    eventually(lambda: hf.status(process) == "ended")
    assert hf("logs", process).stdout == "".join(f"line {number}\n" for number in range(1, 201))
    (notice,) = hf.json("inbox", "--wait", "5")
    assert (notice["process"], notice["data"]["exit_code"]) == (process, 7)


def test_a_cut_connection_is_no_end(hf: Instance) -> None:
    process = hf.start("--", "sh", "-c", COUNT)
    (hf.signpost / "barrier").touch()
    hf.kill_keepers()
    eventually(lambda: hf.status(process) == "unreachable")
    assert hf.place()["state"] == "unreachable"
    assert hf.json("inbox") == []
    refused = hf("run", "--backend", "next", "true", code=125)
    assert "there is a barrier" in refused.stderr
    assert "holdfast backends" in refused.stderr
    (hf.signpost / "barrier").unlink()
    eventually(lambda: hf.status(process) != "unreachable")
    eventually(lambda: hf.status(process) == "ended")
    assert len(hf.json("inbox", "--wait", "5")) == 1


def test_a_defect_of_a_backend_does_not_last(hf: Instance) -> None:
    process = hf.start("--", "sleep", "1000")
    (hf.signpost / "defect").touch()
    hf.kill_keepers()
    eventually(lambda: hf.status(process) == "unreachable")
    (hf.signpost / "defect").unlink()
    eventually(lambda: hf.status(process) == "running")
    assert "a defect of this backend" in (hf.home / "daemon.log").read_text()
    hf("kill", process)


def test_a_place_that_is_gone_ends_its_processes_once(hf: Instance) -> None:
    process = hf.start("--", "sleep", "1000")
    (hf.signpost / "signpost").unlink()
    hf.kill_keepers()
    eventually(lambda: hf.status(process) == "ended", timeout=5.0)
    found = hf.json("inspect", process)
    assert found["reason"] == "lost"
    (notice,) = hf.json("inbox", "--wait", "5", "--ack")
    assert notice["process"] == process
    never(lambda: hf.json("inbox"), within=0.5)
    os.kill(found["pid"], signal.SIGKILL)
    (hf.signpost / "signpost").touch()
    assert hf("run", "--backend", "next", "echo", "again").stdout == "again\n"


def test_an_end_that_was_recorded_before_the_place_was_gone_is_reported_as_it_was(hf: Instance) -> None:
    process = hf.start("--stdin", "--", "sh", "-c", "read line; exit 5")
    daemon = hf.daemon()
    os.kill(daemon, signal.SIGSTOP)
    held = [int(one) for one in os.listdir("/proc") if one.isdigit() and _is_child(int(one), hf.keepers())]
    for one in held:
        if b"read line" in Path("/proc", str(one), "cmdline").read_bytes():
            os.kill(one, signal.SIGKILL)
    eventually(lambda: (hf.home / "places" / os.listdir(hf.home / "places")[0] / "keeper" / "done" / process).exists())
    (hf.signpost / "signpost").unlink()
    hf.kill_keepers()
    os.kill(daemon, signal.SIGCONT)
    eventually(lambda: hf.status(process) == "ended")
    found = hf.json("inspect", process)
    assert (found["reason"], found["signal"]) == ("signaled", 9)


def _is_child(pid: int, parents: list[int]) -> bool:
    try:
        words = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return int(words[1]) in parents


def test_an_unused_place_is_closed_and_opened_again(hf: Instance) -> None:
    process = hf.start("--name", "again", "--", "sh", "-c", "echo run; exit 4")
    hf("wait", process, code=4)
    eventually(lambda: hf.place()["state"] == "closed")
    eventually(lambda: not hf.keepers())
    assert hf("logs", process).stdout == "run\n"
    hf("restart", process)
    hf("wait", process, code=4)
    assert hf("logs", process).stdout == "run\nrun\n"
    assert hf("exec", process, "--", "printenv", "FLOWERS").stdout == "roses\n"
    eventually(lambda: hf.place()["state"] == "closed")
    hf("rm", process)
    hf("inspect", process, code=125)


def test_a_process_of_a_queue_starts_in_its_place(hf: Instance) -> None:
    first = hf.start("--queue", "q", "--", "sh", "-c", "echo one; sleep 1000")
    second = hf.start("--queue", "q", "--", "sh", "-c", "echo $FLOWERS; exit 6")
    assert hf.status(second) == "waiting"
    hf("kill", first)
    hf("wait", second, code=6)
    assert hf("logs", second).stdout == "roses\n"


def test_a_watch_a_terminal_and_readiness_work_there(hf: Instance) -> None:
    script = "echo ready now; stty size; read line; echo got $line; sleep 1000"
    process = hf.start("-t", "--size", "90x20", "--watch", "got", "--ready-log", "ready", "--", "sh", "-c", script)
    hf("wait", process, "--until", "ready", "--timeout", "20")
    assert "20 90" in hf("screen", process).stdout
    hf("send", process, "hello")
    (notice,) = hf.json("inbox", "--wait", "20")
    assert notice["kind"] == "watch_match"
    assert "got hello" in notice["data"]["output"]
    hf("kill", process)


def test_stop_all_ends_what_runs_there(hf: Instance) -> None:
    process = hf.start("--", "sleep", "1000")
    assert "--all" in hf("backends", "stop", "next", code=1).stderr
    assert hf.json("backends", "stop", "next", "--all") == {"closed": 1, "kept": 0, "ended": 1}
    assert hf.status(process) == "ended"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--backend", "none"), "no backend 'none'"),
        (("--backend", "next", "--image", "x"), "no option image"),
        (("--backend", "next", "--on-boot"), "does not come back after a boot"),
        (("--backend", "next", "--cwd", "sub"), "absolute path"),
        (("--backend", "next", "--cwd", "/no/such/directory"), "/no/such/directory"),
        (("--image", "x"), "--backend podman"),
        (("--backend", "../x"), "backend"),
    ],
)
def test_what_cannot_be_done_there_is_refused(hf: Instance, arguments: tuple[str, ...], what: str) -> None:
    done = hf("run", *arguments, "--", "true", code=None)
    assert done.returncode in (125, 126, 127)
    assert what in done.stderr
    assert "Traceback" not in done.stderr
    assert hf.json("ps", "-a") == []
