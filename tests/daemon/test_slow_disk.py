"""A disk that hangs in fdatasync: requests that need not wait for it are answered all the same."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.client.process import Process
from holdfast.client.sync import Client, connect
from tests.support import eventually, is_alive

#: What an answer may take. On a busy machine a single one may be late, a loop that waits for the disk always is.
LIMIT = 0.05
TRIES = 20


class SlowDisk:
    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def begin(self, hf: Client) -> None:
        """From now on a commit does not return. Returns when one hangs."""
        self._mark.touch()
        hf.run("true", notify="any")
        eventually(self._mark.read_text)

    def end(self) -> None:
        self._mark.unlink(missing_ok=True)


@pytest.fixture
def slow_disk(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDisk]:
    disk = SlowDisk(tmp_path / "hangs")
    monkeypatch.setenv("HOLDFAST_HANG_AT", "store-commit")
    monkeypatch.setenv("HOLDFAST_HANG_WHILE", str(tmp_path / "hangs"))
    yield disk
    disk.end()


def fastest(ask: Callable[[], object]) -> float:
    def once() -> float:
        began = time.perf_counter()
        ask()
        return time.perf_counter() - began

    return min(once() for _ in range(TRIES))


def test_ps_kill_start_and_following_do_not_wait_for_a_commit(slow_disk: SlowDisk, home: Path) -> None:
    with connect("tests") as hf:
        echoing = hf.run("while read x; do echo $x; done", stdin=True)
        victims = [hf.run("exec sleep 1000") for _ in range(TRIES)]
        with hf.follow(echoing.id) as followed:
            slow_disk.begin(hf)
            assert fastest(hf.ps) < LIMIT
            assert fastest(lambda: hf.inspect(echoing.id)) < LIMIT
            assert fastest(lambda: hf.run("true")) < LIMIT
            assert fastest(lambda: (hf.send(echoing.id, "hello"), next(followed))) < LIMIT
            assert fastest(lambda: _kill(hf, victims.pop())) < LIMIT
            assert Path(f"/proc/{echoing.pid}").exists()
        hf.kill(echoing.id)
        slow_disk.end()
        assert hf.wait(echoing.id, timeout=20).reason == "killed"
        hf.kill(all=True)
        hf.stop_daemon()


def test_the_reply_to_a_wait_does_not_wait_for_a_commit_and_is_delivered_once(slow_disk: SlowDisk, home: Path) -> None:
    with connect("tests") as hf:
        slow_disk.begin(hf)
        ended = hf.run("exit 3")
        assert hf.wait(ended.id, timeout=20).exit_code == 3
        os.kill(hf.status()["pid"], signal.SIGKILL)  # it has the confirmation of the reply, and has committed nothing
        slow_disk.end()
        eventually(lambda: _acked_by(home, ended.id) == ("wait",), timeout=30)
        assert ended.id not in [notification.process for notification in hf.inbox()]
        hf.stop_daemon()


def _acked_by(home: Path, process_id: str) -> tuple[str | None] | None:
    with closing(sqlite3.connect(home / "store.db")) as connection:
        found: tuple[str | None] | None = connection.execute(
            "SELECT acked_by FROM inbox WHERE process = ?", (process_id,)
        ).fetchone()
    return found


def _kill(hf: Client, process: Process) -> None:
    (result,) = hf.kill(process.id)
    assert (result.status, result.reason, result.signal) == ("ended", "killed", 15), result
    assert process.pid is not None and not is_alive(process.pid)
