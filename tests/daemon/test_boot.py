"""After a boot of the machine: `on_boot` processes run again, each once; no other process does."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.client.process import Process
from holdfast.client.sync import connect
from tests.support import eventually, is_alive, kill_instance, never, run_cli

#: Each run appends a line.
COUNTING = "echo run >> runs; echo up; exec sleep 1000"


def runs(directory: Path) -> int:
    try:
        return len((directory / "runs").read_text().splitlines())
    except FileNotFoundError:
        return 0


def boot(home: Path) -> None:
    """All processes are gone at once, and what was recorded of them is of an earlier boot."""
    kill_instance(str(home))
    now = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    before = "0" * len(now)
    for state in home.glob("place/live/*/state"):
        state.write_bytes(state.read_bytes().replace(now.encode(), before.encode()))
    with closing(sqlite3.connect(home / "store.db")) as store, store:
        changed = store.execute("UPDATE memory SET value = ? WHERE name = 'boot'", (json.dumps(before),))
        assert changed.rowcount == 1


def up(name: str) -> Process:
    def running() -> Process | None:
        with connect() as hf:
            process = hf.inspect(name)
            return process if process.pid is not None and process.status == "running" else None

    return eventually(running)


def test_a_process_comes_back_once_after_a_boot_and_others_never(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with connect() as hf:
        web = hf.run(COUNTING, cwd=tmp_path, name="web", on_boot=True)
        hf.run(COUNTING, cwd=other, name="other", restart="always")
        hf.wait([web.id], until="output", after=0, timeout=30)
        eventually(lambda: runs(other) == 1)
        assert hf.inspect("web").started_by_boot is False
    boot(home)
    back = up("web")
    assert (back.id, back.restarts, back.on_boot, back.started_by_boot) == (web.id, 1, True, True)
    with connect() as hf:
        lost = hf.inspect("other")
        assert (lost.status, lost.reason) == ("ended", "lost")
        (started,) = eventually(lambda: [one for one in hf.events("process.started", since=0) if one.get("boot")])
        assert (started["id"], started["run"]) == (web.id, 1)
        os.kill(hf.status()["pid"], signal.SIGKILL)
    assert up("web").pid == back.pid, "a later daemon of the same boot starts nothing"
    assert (runs(tmp_path), runs(other)) == (2, 1)
    boot(home)
    assert up("web").restarts == 2
    assert runs(tmp_path) == 3


def test_what_waited_for_a_restart_before_the_boot_is_not_run_by_it(home: Path, tmp_path: Path) -> None:
    with connect() as hf:
        process = hf.run("echo run >> runs; exit 3", cwd=tmp_path, restart="always", restart_delay=2.0)
        eventually(lambda: hf.inspect(process.id).restart_at)
    boot(home)
    with connect() as hf:
        ended = hf.inspect(process.id)
        assert (ended.status, ended.reason, ended.exit_code, ended.restart_at) == ("ended", "exited", 3, None)
        never(lambda: runs(tmp_path) > 1, within=3.0)


@pytest.mark.parametrize("how", ["exited", "killed", "session", "removed", "daemon"])
def test_what_was_ended_on_purpose_stays_ended(home: Path, tmp_path: Path, how: str) -> None:
    lifetime = {"session": "session", "daemon": "daemon"}.get(how, "detached")
    command = "echo run >> runs; exit 4" if how == "exited" else COUNTING
    with connect("s") as hf:
        process = hf.run(command, cwd=tmp_path, on_boot=True, lifetime=lifetime)  # type: ignore[arg-type]
        eventually(lambda: runs(tmp_path) == 1)
        if how == "killed":
            hf.kill(process.id)
        elif how == "session":
            hf.end_session("s")
        elif how == "removed":
            hf.kill(process.id)
            hf.remove(process.id)
        elif how == "daemon":
            pid = hf.status()["pid"]
            hf.stop_daemon()
            eventually(lambda: not is_alive(pid))
        else:
            hf.wait(process.id, timeout=30)
    boot(home)
    with connect("s") as hf:
        hf.ps()
        if how in ("exited", "daemon"):
            eventually(lambda: runs(tmp_path) == 2)
        else:
            never(lambda: runs(tmp_path) > 1)


def test_of_two_processes_with_one_name_the_newest_comes_back(home: Path, tmp_path: Path) -> None:
    with connect() as hf:
        old = hf.run("exit 0", name="web", on_boot=True)
        hf.wait(old.id, timeout=30)
        new = hf.run(COUNTING, cwd=tmp_path, name="web", on_boot=True)
        eventually(lambda: runs(tmp_path) == 1)
    boot(home)
    assert up("web").id == new.id
    with connect() as hf:
        assert hf.inspect(old.id).restarts == 0


@pytest.mark.parametrize(
    "pause", [0.0, 0.1, *(pytest.param(one, marks=pytest.mark.full) for one in (0.02, 0.05, 0.2, 0.4))]
)
def test_a_daemon_killed_while_it_starts_them_starts_each_once(home: Path, tmp_path: Path, pause: float) -> None:
    with connect() as hf:
        for number in range(5):
            hf.run(COUNTING, cwd=tmp_path, name=f"web-{number}", on_boot=True)
        eventually(lambda: runs(tmp_path) == 5)
    boot(home)
    with connect() as hf:
        pid = hf.status()["pid"]
        time.sleep(pause)  # the instant of the crash: any will do
        os.kill(pid, signal.SIGKILL)
    back = [up(f"web-{number}") for number in range(5)]
    assert [process.restarts for process in back] == [1] * 5
    assert all(process.started_by_boot for process in back)
    eventually(lambda: runs(tmp_path) == 10)
    never(lambda: runs(tmp_path) > 10, within=0.5)


def test_run_says_that_the_daemon_does_not_start_at_login(home: Path, tmp_path: Path) -> None:
    config = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    done = run_cli("run", "-d", "--on-boot", "sleep", "1000", env=config)
    assert done.returncode == 0
    assert done.stderr.decode().count("\n") == 1
    assert "holdfast service install" in done.stderr.decode()
    shown = run_cli("inspect", done.stdout.decode().strip(), "--json", env=config)
    assert json.loads(shown.stdout)["on_boot"] is True
    units = tmp_path / "config" / "systemd" / "user"
    units.mkdir(parents=True)
    named = json.loads(run_cli("service", "status", "--json", env=config).stdout)["path"]
    Path(named).write_text("")
    done = run_cli("run", "-d", "--on-boot", "sleep", "1001", env=config)
    assert done.stderr == b""
