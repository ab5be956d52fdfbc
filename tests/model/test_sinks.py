"""Which sink gets which notice, when, and how often it is tried."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.events import Notice
from holdfast.model.notices.sinks import (
    FARTHEST,
    KINDS,
    LONGEST_PAUSE,
    LONGEST_RETRY_AFTER,
    DeliveryState,
    Quiet,
    SendResult,
    Sink,
    is_due,
    judge,
    not_before,
    pause,
    wants,
)
from holdfast.model.process import ProcessId

BERLIN = ZoneInfo("Europe/Berlin")


def notice(kind: Any = "completion", session: str = "chat-42", **data: Any) -> Notice:
    return Notice(f"proc_0:{kind}:0", kind, ProcessId("proc_000000000000"), session, 1000.0, None, data)


def sink(**more: Any) -> Sink:
    return Sink("phone", "webhook", **more)


def berlin(text: str, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold).timestamp()


@pytest.mark.parametrize("kind", KINDS)
def test_by_kind(kind: Any) -> None:
    assert wants(sink(), notice(kind, reason="exited", exit_code=0)) == (kind != "progress")
    assert wants(sink(kinds=frozenset({kind})), notice(kind))
    assert not wants(sink(kinds=frozenset(KINDS) - {kind}), notice(kind))


def test_by_session() -> None:
    assert wants(sink(sessions=("chat-*", "x")), notice())
    assert not wants(sink(sessions=("Chat-*",)), notice())
    assert wants(sink(sessions=("[a-c]hat-4?",)), notice())
    assert not wants(sink(sessions=("chat",)), notice())


@pytest.mark.parametrize(
    ("data", "failed"),
    [
        ({"reason": "exited", "exit_code": 0}, False),
        ({"reason": "exited", "exit_code": 3}, True),
        ({"reason": "signaled", "signal": 9, "exit_code": None}, True),
        ({"reason": "lost"}, True),
        ({"reason": "oom", "signal": 9}, True),
        ({}, True),
    ],
)
def test_by_outcome(data: dict[str, Any], failed: bool) -> None:
    assert wants(sink(outcomes="any"), notice(**data))
    assert wants(sink(outcomes="failure"), notice(**data)) == failed
    assert wants(sink(outcomes="success"), notice(**data)) != failed
    assert wants(sink(outcomes="success"), notice("stalled"))


def test_one_that_is_off_wants_nothing() -> None:
    assert not wants(sink(enabled=False), notice())


@pytest.mark.parametrize(
    ("quiet", "at", "until"),
    [
        (Quiet(1320, 420), "2026-01-10T23:30", "2026-01-11T07:00"),
        (Quiet(1320, 420), "2026-01-10T22:00", "2026-01-11T07:00"),
        (Quiet(1320, 420), "2026-01-10T06:59:59", "2026-01-10T07:00"),
        (Quiet(1320, 420), "2026-01-10T07:00", "2026-01-10T07:00"),
        (Quiet(1320, 420), "2026-01-10T21:59:59", "2026-01-10T21:59:59"),
        (Quiet(720, 780), "2026-01-10T12:30", "2026-01-10T13:00"),
        (Quiet(720, 0), "2026-01-10T12:30", "2026-01-11T00:00"),
        # The night has 9 hours, and 11.
        (Quiet(1320, 420), "2026-03-28T22:00", "2026-03-29T07:00"),
        (Quiet(1320, 420), "2026-10-24T22:00", "2026-10-25T07:00"),
    ],
)
def test_quiet_hours_end_by_the_local_clock(quiet: Quiet, at: str, until: str) -> None:
    assert not_before(sink(quiet=quiet), berlin(at), BERLIN) == berlin(until)


def test_in_the_hour_that_comes_twice_quiet_ends_in_the_same_one() -> None:
    half = sink(quiet=Quiet(120, 150))
    assert not_before(half, berlin("2026-10-25T02:15", fold=1), BERLIN) == berlin("2026-10-25T02:30", fold=1)


minutes = st.integers(0, 1439)


@given(minutes, minutes, st.floats(1.7e9, 1.9e9))
def test_what_is_held_back_comes_within_a_day_and_not_in_the_quiet_hours(start: int, end: int, at: float) -> None:
    quiet = sink(quiet=Quiet(start, end) if start != end else None)
    then = not_before(quiet, at, BERLIN)
    assert at <= then <= at + 90_000
    assert not_before(quiet, then, BERLIN) == then


def test_pauses_double_up_to_an_hour() -> None:
    assert [pause(n) for n in (1, 2, 3, 4)] == [5, 10, 20, 40]
    assert pause(11) == LONGEST_PAUSE
    assert pause(10**6) == LONGEST_PAUSE


def test_what_is_sent_is_over() -> None:
    assert judge(sink(), 3, SendResult(True), 1000.0) == DeliveryState(4)


def test_a_failure_is_tried_again_until_it_is_given_up() -> None:
    failed = SendResult(False, "answered 500")
    assert judge(sink(), 0, failed, 1000.0) == DeliveryState(1, "answered 500", due_at=1005.0)
    assert judge(sink(tries=3), 1, failed, 1000.0).due_at == 1010.0
    assert judge(sink(tries=3), 2, failed, 1000.0) == DeliveryState(3, "answered 500", dead_at=1000.0)


def test_a_refusal_for_good_is_given_up_at_once() -> None:
    assert judge(sink(), 0, SendResult(False, "answered 404", permanent=True), 7.0) == DeliveryState(
        1, "answered 404", None, 7.0
    )


def test_the_receiver_may_ask_for_more_time_but_not_for_ever() -> None:
    assert judge(sink(), 0, SendResult(False, "busy", retry_after=60.0), 0.0).due_at == 60.0
    assert judge(sink(), 0, SendResult(False, "busy", retry_after=1.0), 0.0).due_at == 5.0
    assert judge(sink(), 0, SendResult(False, "busy", retry_after=1e12), 0.0).due_at == LONGEST_RETRY_AFTER


def test_a_try_that_would_fall_into_quiet_hours_waits_for_their_end() -> None:
    night = sink(quiet=Quiet(1320, 420))
    now = berlin("2026-01-10T21:59:58")
    assert judge(night, 0, SendResult(False, "down"), now, BERLIN).due_at == berlin("2026-01-11T07:00")


def test_a_clock_that_is_set_back_holds_nothing_back_for_long() -> None:
    assert is_due(100.0, 100.0)
    assert not is_due(101.0, 100.0)
    assert is_due(100.0 + FARTHEST + 1, 100.0)
