"""Exits are learned from the kernel, at once, and never from end of file."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.keeper.driver import ONE, KeeperPair, named
from tests.support import eventually


@pytest.mark.parametrize("pty", [False, True])
def test_the_exit_code_is_the_commands_own(pair: KeeperPair, pty: bool) -> None:
    pair.start(ONE, "exit 3", pty=pty)
    assert pair.exit_of(ONE)["code"] == 3


@pytest.mark.parametrize("pty", [False, True])
def test_a_command_that_kills_itself_has_a_signal_and_no_code(pair: KeeperPair, pty: bool) -> None:
    pair.start(ONE, "kill -9 $$", pty=pty)
    ended = pair.exit_of(ONE)
    assert (ended["code"], ended["signal"]) == (None, signal.SIGKILL)


def test_a_grandchild_that_keeps_the_pipe_does_not_keep_the_command_running(pair: KeeperPair) -> None:
    began = time.monotonic()
    pair.start(ONE, "sleep 300 & echo hi; exit 4")
    ended = pair.control.fact("ended", ONE)["report"]["exit"]
    assert time.monotonic() - began < 30, "not as long as the grandchild"
    assert ended["code"] == 4
    (leftover, _), *more = ended["leftovers"]
    assert not more
    eventually(lambda: Path(f"/proc/{leftover}/cmdline").read_text().startswith("sleep"))
    pair.stop(ONE)
    eventually(lambda: not os.path.exists(f"/proc/{leftover}"))


def test_a_command_that_closes_its_output_still_runs(pair: KeeperPair) -> None:
    pair.start(ONE, "exec >/dev/null 2>&1; read -t 1 < <(sleep 9); exit 7")
    closed = eventually(lambda: pair.control.ask("report", id=ONE)["streams"]["out"]["closed"])
    assert closed
    assert pair.control.ask("report", id=ONE)["exit"] is None
    assert pair.exit_of(ONE)["code"] == 7


def test_an_endless_leftover_does_not_delay_the_exit(pair: KeeperPair) -> None:
    pair.start(ONE, "yes & exit 3", log_cap=1 << 20)
    ended = pair.control.fact("ended", ONE)["report"]
    assert ended["exit"]["code"] == 3
    assert ended["exit"]["ends"]["out"] <= ended["streams"]["out"]["end"]
    assert pair.stop(ONE, grace=1)["survivors"] == []


def test_output_of_a_leftover_follows_the_offset_of_the_exit(pair: KeeperPair) -> None:
    pair.start(ONE, "echo before; (until [ -e /proc/self/fd/9 ]; do sleep 0.1; break; done; echo after) & exit 0")
    ended = pair.control.fact("ended", ONE)["report"]["exit"]
    assert pair.complete(ONE) == b"before\nafter\n"
    assert ended["ends"]["out"] == len(b"before\n")


def test_the_last_line_of_a_terminal_is_always_there(pair: KeeperPair) -> None:
    for count in range(30):
        process_id = named(count)
        pair.start(process_id, "seq 1 3000", pty=True)
        assert pair.complete(process_id).endswith(b"2999\r\n3000\r\n")
        assert pair.exit_of(process_id)["code"] == 0


def test_a_stopped_command_has_not_ended(pair: KeeperPair) -> None:
    report = pair.start(ONE, "sleep 300")
    assert pair.control.ask("signal", id=ONE, signal=signal.SIGSTOP)["sent"] == 1
    eventually(lambda: Path(f"/proc/{report['born']['pid']}/stat").read_text().split()[2] in "Tt")
    assert pair.control.ask("report", id=ONE)["exit"] is None
    assert pair.stop(ONE)["report"]["exit"]["signal"] == signal.SIGTERM


def test_resource_usage_is_recorded_with_the_exit(pair: KeeperPair) -> None:
    pair.start("large", [sys.executable, "-c", "x = bytearray(100 << 20)"])
    pair.start("small", ["true"])
    large, small = pair.exit_of("large"), pair.exit_of("small")
    assert 100 << 20 < large["peak"] < 200 << 20
    assert 0.01 < large["cpu"] < 10
    assert small["peak"] is None  # below the peak of the process that it was forked as, it is unknown
    assert small["cpu"] < large["cpu"]
