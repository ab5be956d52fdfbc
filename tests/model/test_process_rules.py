"""The small rules: deadlines, retention, limits, lifetimes."""

from __future__ import annotations

import pytest

from holdfast.model import process_rules
from holdfast.model.agents import is_session
from holdfast.model.lifecycle import Requested, Stopping, StopRequest
from holdfast.model.process import is_id, is_name
from holdfast.model.process_rules import (
    end_with_daemon,
    end_with_session,
    may_be_forgotten,
    parent_of,
)
from holdfast.records import replace
from tests.model.made import ended, process


def test_a_deadline_is_due_when_it_has_passed_and_only_once() -> None:
    limited = process(100, deadline=5.0)
    assert process_rules.deadlines_due([limited], now=104.9) == []
    assert process_rules.deadlines_due([limited], now=105.0) == [limited]
    assert process_rules.deadlines_due([replace(limited, deadline_notified=True)], now=200.0) == []


def test_a_deadline_counts_from_the_start_of_the_command() -> None:
    assert process_rules.next_deadline([process(100, deadline=5.0), process(90, deadline=20.0), process(80)]) == 105.0


def test_nothing_is_due_for_what_is_already_ending_or_over() -> None:
    stopping = process(1, Stopping(1, 1.0, StopRequest("x", "killed", 2.0)), deadline=1.0)
    assert process_rules.deadlines_due([stopping, ended(2, 3.0, deadline=1.0), process(3)], now=1e9) == []


def test_old_ended_ones_may_go_and_young_ones_may_not() -> None:
    processes = [ended(1, at=100.0), ended(2, at=5000.0), process(3)]
    assert may_be_forgotten(processes, now=10_000.0, keep=8000.0, at_most=10, floor=1800.0) == [processes[0].id]


def test_beyond_the_number_that_is_kept_the_oldest_go_first() -> None:
    processes = [ended(number, at=float(number)) for number in range(1, 6)]
    gone = may_be_forgotten(processes, now=10_000.0, keep=1e9, at_most=2, floor=1800.0)
    assert set(gone) == {process.id for process in processes[:3]}


def test_nothing_within_the_floor_is_deleted_with_any_limits() -> None:
    assert may_be_forgotten([ended(1, at=9_000.0)], now=10_000.0, keep=0.0, at_most=0, floor=1800.0) == []


def test_what_descendants_still_write_to_does_not_go() -> None:
    assert may_be_forgotten([ended(1, at=1.0, closed=False)], now=1e6, keep=0.0, at_most=0, floor=0.0) == []


def test_a_session_takes_with_it_what_was_to_live_as_long() -> None:
    own = [process(1, lifetime="session"), process(2, lifetime="daemon"), process(3)]
    other = process(4, lifetime="session", session="other")
    ending, left = end_with_session([*own, other, ended(5, 1.0, lifetime="session")], "s")
    assert (ending, left) == ([own[0]], own[1:])


def test_the_parent_of_a_session_is_what_its_newest_process_names() -> None:
    old, new = process(1, parent_session="p"), process(2, parent_session="q")
    foreign, itself = process(3, session="t", parent_session="r"), process(4, parent_session="s")
    assert parent_of([new, old, foreign, itself, process(5)], "s") == "q"
    assert parent_of([ended(1, 5.0, parent_session="p"), process(2)], "s") == "p"
    assert parent_of([foreign, itself], "s") is None


def test_a_stop_on_purpose_takes_only_what_was_to_live_as_long_as_the_daemon() -> None:
    processes = [process(1, lifetime="session"), process(2, lifetime="daemon"), process(3)]
    ending, left = end_with_daemon([*processes, process(4, Requested(), lifetime="daemon")])
    assert (ending, left) == ([processes[1]], [processes[0], processes[2]])


@pytest.mark.parametrize("text", ["a", "web-1.2_X", "x" * 64, "beef", "deadbeef0123"])
def test_names_that_may_be_given(text: str) -> None:
    assert is_name(text)


@pytest.mark.parametrize("text", ["", "x" * 65, "a b", "ä", "a/b", "proc_1", "proc_0123456789ab", "a\n"])
def test_names_that_may_not(text: str) -> None:
    assert not is_name(text)


def test_ids_and_sessions() -> None:
    assert is_id("proc_0123456789ab")
    assert not any(map(is_id, ["proc_0123456789aB", "proc_0123456789a", "proc_0123456789ab\n", "0123456789ab"]))
    assert is_session("chat 42 · ünïcode")
    assert not any(map(is_session, ["", "x" * 257, "a\tb", "a\x00"]))
