"""A home or a socket that is deleted: the instance is found again, or ends when it is no longer needed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from tests.support import eventually, is_alive, processes_of

END_TIMEOUT = 30.0


def delete(home: Path) -> None:
    """Tried until it is gone: a process may be making files there."""

    def is_gone() -> bool:
        shutil.rmtree(home, ignore_errors=True)
        return not home.exists()

    eventually(is_gone)


def instance_pids(client: holdfast.Client) -> list[int]:
    """Daemon, keeper and anchor, when no other process of the instance is starting: two may race for the place."""
    status = client.status()
    eventually(lambda: all(_is_named(pid) for pid in processes_of(status["home"]) if pid != status["pid"]), END_TIMEOUT)
    return [status["pid"], status["keeper_pid"], status["anchor_pid"]]


@pytest.mark.full
def test_a_keeper_that_no_daemon_connects_to_ends(home: Path) -> None:
    keeper = subprocess.Popen([sys.executable, "-m", "holdfast_keeper", str(home / "place")])
    assert keeper.wait(END_TIMEOUT) == 0
    eventually(lambda: not processes_of(str(home)))


@pytest.mark.full
def test_without_a_home_and_without_commands_all_processes_end(home: Path) -> None:
    with holdfast.connect() as client:
        pids = instance_pids(client)
        client.wait(client.run("true"))
        delete(home)
        eventually(lambda: not any(map(is_alive, pids)), END_TIMEOUT)
    eventually(lambda: not processes_of(str(home)), END_TIMEOUT)
    assert not home.exists()


@pytest.mark.full
def test_without_a_home_commands_go_on(home: Path, tmp_path: Path) -> None:
    go, done = tmp_path / "go", tmp_path / "done"
    command = f"until [ -e {go} ]; do echo on; sleep 0.1; done; echo end > {done}"
    with holdfast.connect() as client:
        held = [client.run(command), client.run("sleep 60", pty=True)]
        pids = instance_pids(client)
    delete(home)
    # Longer than they need to see it: a command without a reader would now be ended by SIGPIPE.
    eventually(lambda: "home-gone" in _log_of(pids[0]), END_TIMEOUT)
    assert all(map(is_alive, pids))
    go.touch()
    eventually(done.exists)
    assert held[1].pid is not None
    os.kill(held[1].pid, signal.SIGKILL)
    eventually(lambda: not any(map(is_alive, pids)), END_TIMEOUT)
    eventually(lambda: not processes_of(str(home)), END_TIMEOUT)
    assert not home.exists()


@pytest.mark.full
def test_a_keeper_without_a_home_starts_no_daemon(home: Path) -> None:
    with holdfast.connect() as client:
        pids = instance_pids(client)
    delete(home)
    os.kill(pids[0], signal.SIGKILL)
    eventually(lambda: not any(map(is_alive, pids)), END_TIMEOUT)
    eventually(lambda: not processes_of(str(home)), END_TIMEOUT)
    assert not home.exists()


def test_an_anchor_without_a_home_does_not_fork_for_ever(home: Path) -> None:
    with holdfast.connect() as client:
        pids = instance_pids(client)
    delete(home)
    for pid in pids[:2]:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not processes_of(str(home)), END_TIMEOUT)


@pytest.mark.full
def test_a_new_instance_in_the_same_home_goes_on(home: Path) -> None:
    with holdfast.connect() as client:
        pids = instance_pids(client)
    delete(home)
    with holdfast.connect() as client:
        newer = client.run("sleep 60")
        assert instance_pids(client)[0] != pids[0]
        eventually(lambda: not any(map(is_alive, pids)), END_TIMEOUT)
    with holdfast.connect() as client:
        assert client.inspect(newer).status == "running"
        assert all(map(is_alive, instance_pids(client)))


def test_a_deleted_socket_comes_back(home: Path) -> None:
    with holdfast.connect() as client:
        process = client.run("sleep 60")
        pid = client.status()["pid"]
        (home / "daemon.sock").unlink()
        eventually((home / "daemon.sock").exists, END_TIMEOUT)
        assert client.inspect(process).status == "running"
    with holdfast.connect() as client:
        assert client.status()["pid"] == pid


def _is_named(pid: int) -> bool:
    try:
        return not Path(f"/proc/{pid}/comm").read_text().startswith("python")
    except OSError:
        return True


def _log_of(pid: int) -> str:
    with open(f"/proc/{pid}/fd/2", encoding="utf-8") as log:
        return log.read()
