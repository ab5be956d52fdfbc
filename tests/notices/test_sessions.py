"""Which sessions are known: when one begins, is renamed, ends, and is reset."""

from __future__ import annotations

import time

from holdfast.daemon.notices.sessions import IDLE, Names
from tests.model.made import ended, process


def test_a_session_begins_with_its_first_process_and_once() -> None:
    names = Names({})
    assert names.begins("a")
    assert not names.begins("a")
    names.ends("a")
    assert names.begins("a")


def test_a_session_with_processes_on_record_is_known() -> None:
    now = time.time()
    found = [process(1, session="runs"), ended(2, now - 60, session="recent"), ended(3, now - 2 * IDLE, session="old")]
    names = Names({}, found, now)
    assert [names.begins(session) for session in ("runs", "recent", "old")] == [False, False, True]


def test_a_renamed_session_is_the_same_one() -> None:
    names = Names({})
    names.begins("a")
    names.renamed("a", "b")
    assert not names.begins("b")
    assert names.begins("a")


def test_an_idle_session_is_reset_once_and_never_while_a_process_runs() -> None:
    now = 1e9
    names = Names({}, [ended(1, now, session="idle"), process(2, session="runs")], now)
    assert names.idle({"runs"}, now + IDLE - 1) == {}
    assert names.idle({"runs"}, now + IDLE) == {"idle": now}
    assert names.idle({"runs"}, now + 5 * IDLE) == {}
    assert names.begins("idle") and not names.begins("runs")
