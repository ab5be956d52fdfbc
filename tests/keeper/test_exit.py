"""How an end is learned: from the kernel, at once, and never from end-of-file."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.keeper.driver import ONE, Family, named
from tests.support import eventually


@pytest.mark.parametrize("pty", [False, True])
def test_the_exit_code_is_the_commands_own(family: Family, pty: bool) -> None:
    family.start(ONE, "exit 3", pty=pty)
    assert family.exit_of(ONE)["code"] == 3


@pytest.mark.parametrize("pty", [False, True])
def test_a_command_that_kills_itself_is_said_to_be_signalled(family: Family, pty: bool) -> None:
    family.start(ONE, "kill -9 $$", pty=pty)
    ended = family.exit_of(ONE)
    assert (ended["code"], ended["signal"]) == (None, signal.SIGKILL)


def test_a_grandchild_that_keeps_the_pipe_does_not_keep_the_command_running(family: Family) -> None:
    began = time.monotonic()
    family.start(ONE, "sleep 300 & echo hi; exit 4")
    ended = family.line.fact("ended", ONE)["report"]["exit"]
    assert time.monotonic() - began < 2
    assert ended["code"] == 4
    (leftover, _), *more = ended["leftovers"]
    assert not more
    eventually(lambda: Path(f"/proc/{leftover}/cmdline").read_text().startswith("sleep"))
    family.stop(ONE)
    eventually(lambda: not os.path.exists(f"/proc/{leftover}"))


def test_a_command_that_closes_its_output_still_runs(family: Family) -> None:
    family.start(ONE, "exec >/dev/null 2>&1; read -t 1 < <(sleep 9); exit 7")
    closed = eventually(lambda: family.line.ask("report", id=ONE)["streams"]["out"]["closed"])
    assert closed
    assert family.line.ask("report", id=ONE)["exit"] is None
    assert family.exit_of(ONE)["code"] == 7


def test_an_endless_writer_left_behind_does_not_hold_up_the_end(family: Family) -> None:
    family.start(ONE, "yes & exit 3", log_cap=1 << 20)
    ended = family.line.fact("ended", ONE)["report"]
    assert ended["exit"]["code"] == 3
    assert ended["exit"]["ends"]["out"] <= ended["streams"]["out"]["end"]
    assert family.stop(ONE, grace=1)["survivors"] == []


def test_what_a_descendant_prints_after_the_exit_is_kept_behind_it(family: Family) -> None:
    family.start(ONE, "echo before; (until [ -e /proc/self/fd/9 ]; do sleep 0.1; break; done; echo after) & exit 0")
    ended = family.line.fact("ended", ONE)["report"]["exit"]
    assert family.complete(ONE) == b"before\nafter\n"
    assert ended["ends"]["out"] == len(b"before\n")


def test_the_last_line_of_a_terminal_is_always_there(family: Family) -> None:
    for count in range(30):
        process_id = named(count)
        family.start(process_id, "seq 1 3000", pty=True)
        assert family.complete(process_id).endswith(b"2999\r\n3000\r\n")
        assert family.exit_of(process_id)["code"] == 0


def test_a_stopped_command_is_not_taken_for_an_ended_one(family: Family) -> None:
    report = family.start(ONE, "sleep 300")
    assert family.line.ask("signal", id=ONE, signal=signal.SIGSTOP)["sent"] == 1
    eventually(lambda: Path(f"/proc/{report['born']['pid']}/stat").read_text().split()[2] in "Tt")
    assert family.line.ask("report", id=ONE)["exit"] is None
    assert family.stop(ONE)["report"]["exit"]["signal"] == signal.SIGTERM


def test_what_it_used_is_recorded_with_the_exit(family: Family) -> None:
    family.start("large", [sys.executable, "-c", "x = bytearray(100 << 20)"])
    family.start("small", ["true"])
    large, small = family.exit_of("large"), family.exit_of("small")
    assert 100 << 20 < large["peak"] < 200 << 20
    assert 0.01 < large["cpu"] < 10
    assert small["peak"] is None  # less than what it was born with cannot be told
    assert small["cpu"] < large["cpu"]
