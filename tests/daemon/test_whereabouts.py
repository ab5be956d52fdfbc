"""A home or a socket that somebody deletes: the instance is found again, or ends when it is no longer needed."""

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

PATIENCE = 30.0


def delete(home: Path) -> None:
    """As often as it takes: somebody may be making files there just now."""

    def is_gone() -> bool:
        shutil.rmtree(home, ignore_errors=True)
        return not home.exists()

    eventually(is_gone)


def family(client: holdfast.Client) -> list[int]:
    """Daemon, keeper and anchor, once nobody else is just starting: two may race for the place."""
    status = client.status()
    eventually(lambda: all(_is_named(pid) for pid in processes_of(status["home"]) if pid != status["pid"]), PATIENCE)
    return [status["pid"], status["keeper_pid"], status["anchor_pid"]]


@pytest.mark.full
def test_a_keeper_that_no_daemon_ever_came_to_ends(home: Path) -> None:
    keeper = subprocess.Popen([sys.executable, "-m", "holdfast_keeper", str(home / "place")])
    assert keeper.wait(PATIENCE) == 0
    eventually(lambda: not processes_of(str(home)))


@pytest.mark.full
def test_without_a_home_and_without_commands_all_parts_end(home: Path) -> None:
    with holdfast.connect() as client:
        pids = family(client)
        client.wait(client.run("true"))
        delete(home)
        eventually(lambda: not any(map(is_alive, pids)), PATIENCE)
    eventually(lambda: not processes_of(str(home)), PATIENCE)
    assert not home.exists()


@pytest.mark.full
def test_without_a_home_commands_are_held_on_to(home: Path, tmp_path: Path) -> None:
    go, done = tmp_path / "go", tmp_path / "done"
    command = f"until [ -e {go} ]; do echo on; sleep 0.1; done; echo end > {done}"
    with holdfast.connect() as client:
        held = [client.run(command), client.run("sleep 60", pty=True)]
        pids = family(client)
    delete(home)
    # Longer than it takes them to notice: whoever loses its reader now would die of SIGPIPE.
    eventually(lambda: "home-gone" in _log_of(pids[0]), PATIENCE)
    assert all(map(is_alive, pids))
    go.touch()
    eventually(done.exists)
    assert held[1].pid is not None
    os.kill(held[1].pid, signal.SIGKILL)
    eventually(lambda: not any(map(is_alive, pids)), PATIENCE)
    eventually(lambda: not processes_of(str(home)), PATIENCE)
    assert not home.exists()


@pytest.mark.full
def test_a_keeper_without_a_home_brings_no_daemon_back(home: Path) -> None:
    with holdfast.connect() as client:
        pids = family(client)
    delete(home)
    os.kill(pids[0], signal.SIGKILL)
    eventually(lambda: not any(map(is_alive, pids)), PATIENCE)
    eventually(lambda: not processes_of(str(home)), PATIENCE)
    assert not home.exists()


def test_an_anchor_without_a_home_does_not_fork_for_ever(home: Path) -> None:
    with holdfast.connect() as client:
        pids = family(client)
    delete(home)
    for pid in pids[:2]:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not processes_of(str(home)), PATIENCE)


@pytest.mark.full
def test_a_later_user_of_the_same_home_is_left_alone(home: Path) -> None:
    with holdfast.connect() as client:
        pids = family(client)
    delete(home)
    with holdfast.connect() as client:
        newer = client.run("sleep 60")
        assert family(client)[0] != pids[0]
        eventually(lambda: not any(map(is_alive, pids)), PATIENCE)
    with holdfast.connect() as client:
        assert client.inspect(newer).status == "running"
        assert all(map(is_alive, family(client)))


def test_a_deleted_socket_comes_back(home: Path) -> None:
    with holdfast.connect() as client:
        process = client.run("sleep 60")
        pid = client.status()["pid"]
        (home / "daemon.sock").unlink()
        eventually((home / "daemon.sock").exists, PATIENCE)
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
