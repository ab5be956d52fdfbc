"""Stalls of real processes."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from holdfast.client.process import Process
from holdfast.client.sync import Client
from tests.daemon.acting import kill_daemon, log_text
from tests.support import eventually, never


def test_quiet_and_idle_raises_one_mark_for_each_episode(hf: Client, home: Path) -> None:
    process = hf.run("echo begun; while read x; do echo $x; done", stdin=True, stall=0.4)
    stalled = eventually(lambda: _stalled(hf, process.id))
    data = stalled.stall_data
    assert data is not None
    assert 0 <= time.time() - data["last_output_at"] < 10
    assert data["since"] >= data["last_output_at"] - 0.1
    assert "sleeping" in data["wait"]
    assert stalled.status == "running"
    never(lambda: log_text(home).count(f" stalled process={process.id}") != 1)  # longer than another episode would take
    hf.send(process.id, "again")
    eventually(lambda: not hf.inspect(process.id).stalled)
    assert hf.inspect(process.id).stall_data is None
    eventually(lambda: _stalled(hf, process.id))
    assert log_text(home).count(f" stalled process={process.id}") == 2
    assert log_text(home).count(f"stall-over process={process.id}") == 1


@pytest.mark.parametrize("grouped", [True, False])
def test_quiet_but_busy_raises_nothing(home: Path, monkeypatch: pytest.MonkeyPatch, grouped: bool) -> None:
    if not grouped:
        monkeypatch.setenv("HOLDFAST_NO_CGROUP", "1")
    with Client("tests", home=home) as hf:
        process = hf.run("(while :; do :; done) & wait", stall=0.4)
        twin = hf.run("sleep 60", stall=0.4)
        eventually(lambda: _stalled(hf, twin.id))
        never(lambda: hf.inspect(process.id).stalled)
        assert f"stalled process={process.id}" not in log_text(home)
        hf.kill(all=True, grace=0.1)


def test_work_ends_an_episode(hf: Client) -> None:
    work = "import sys, time\nsys.stdin.readline()\nwhile 1: pass"
    process = hf.run([sys.executable, "-c", work], stdin=True, stall=0.4)
    eventually(lambda: _stalled(hf, process.id))
    hf.send(process.id, "go")
    eventually(lambda: not hf.inspect(process.id).stalled)


def test_an_episode_is_raised_once_over_a_crash(hf: Client, home: Path) -> None:
    process = hf.run("echo begun; sleep 60", stall=0.4)
    before = eventually(lambda: _stalled(hf, process.id))
    kill_daemon(hf)
    assert hf.inspect(process.id).stall_data == before.stall_data
    never(lambda: not hf.inspect(process.id).stalled)  # longer than another episode would take
    assert log_text(home).count(f" stalled process={process.id}") == 1


def test_what_has_ended_is_not_stalled(hf: Client) -> None:
    process = hf.run("sleep 60", stall=0.2)
    eventually(lambda: _stalled(hf, process.id))
    hf.kill(process.id)
    over = hf.inspect(process.id)
    assert (over.status, over.stalled) == ("ended", False)


def _stalled(hf: Client, process_id: str) -> Process | None:
    process = hf.inspect(process_id)
    return process if process.stalled else None
