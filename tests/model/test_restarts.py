"""When a process is run again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.lifecycle import (
    Ended,
    Exited,
    Lost,
    NeverRan,
    Outcome,
    Restarting,
    Signaled,
    StopReason,
    StopRequest,
    Unseen,
)
from holdfast.model.process import Meta
from holdfast.model.process_rules import (
    LONGEST_RESTART_PAUSE,
    STABLE_AFTER,
    RestartVerdict,
    after_end,
    after_failed_launch,
    may_run_again,
    next_restart,
    restart_pause,
    restarts_due,
)
from tests.model.made import ended, process

NO = RestartVerdict()


def meta(**options: Any) -> Meta:
    return process(1, **options).meta


def over(outcome: Outcome = Exited(1), lasted: float = 0.1, stop: StopRequest | None = None) -> Ended:  # noqa: B008
    return Ended(outcome, 100.0, 7, 100.0 - lasted, 100.0, stop)


@pytest.mark.parametrize(
    ("policy", "outcome", "again"),
    [
        ("never", Exited(1), False),
        ("on-failure", Exited(1), True),
        ("on-failure", Exited(0), False),
        ("on-failure", Signaled(9), True),
        ("on-failure", Unseen(), True),
        ("always", Exited(0), True),
        ("always", Signaled(15), True),
        ("always", Lost(), False),
        ("always", NeverRan(), False),
    ],
)
def test_the_policy_decides(policy: str, outcome: Outcome, again: bool) -> None:
    assert (after_end(meta(restart=policy), over(outcome), 0).due is not None) == again


def test_some_codes_are_no_failure() -> None:
    rule = meta(restart="on-failure", success_codes=(0, 3))
    assert after_end(rule, over(Exited(3)), 0) == NO
    assert after_end(rule, over(Exited(4)), 0).due is not None


@pytest.mark.parametrize("why", ["killed", "deadline", "session_end", "daemon_stop"])
def test_what_was_asked_to_end_stays_ended(why: StopReason) -> None:
    assert after_end(meta(restart="always"), over(stop=StopRequest(None, why, 99.0)), 0) == NO


@pytest.mark.parametrize("policy", ["never", "on-failure", "always"])
def test_what_was_asked_to_restart_is_run_again_at_once(policy: str) -> None:
    assert after_end(meta(restart=policy), over(stop=StopRequest("me", "restart", 99.0)), 4) == RestartVerdict(100.0, 0)


def test_pauses_double_up_to_the_longest_and_then_it_gives_up() -> None:
    rule = meta(restart="always", restart_limit=9)
    verdict, pauses = RestartVerdict(), []
    while not (verdict := after_end(rule, over(), verdict.streak)).gave_up:
        assert verdict.due is not None
        pauses.append(verdict.due - 100.0)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert verdict == RestartVerdict(None, 9, gave_up=True)


def test_a_run_that_goes_well_begins_a_new_row() -> None:
    rule = meta(restart="always", restart_limit=3)
    assert after_end(rule, over(lasted=STABLE_AFTER), 3) == RestartVerdict(101.0, 1)
    assert after_end(rule, over(lasted=STABLE_AFTER - 0.1), 3).gave_up
    assert after_end(rule, over(Exited(0)), 2) == RestartVerdict(104.0, 3), "also a success is no long life"


def test_a_long_pause_asks_for_a_long_life() -> None:
    rule = meta(restart="always", restart_limit=0)
    assert after_end(rule, over(lasted=59.0), 10).streak == 11
    assert after_end(rule, over(lasted=60.0), 10).streak == 1


def test_a_restart_that_could_not_be_started_counts() -> None:
    rule = meta(restart="on-failure", restart_limit=2)
    assert after_failed_launch(rule, 1, 50.0) == RestartVerdict(52.0, 2)
    assert after_failed_launch(rule, 2, 50.0).gave_up
    assert after_failed_launch(meta(), 0, 50.0) == NO, "one that was asked for by hand is not tried again"


@given(st.floats(1e-9, 86400.0), st.integers(0, 10**6))
def test_no_pause_is_too_long_or_goes_backwards(delay: float, streak: int) -> None:
    rule = meta(restart="always", restart_delay=delay)
    assert 0 < restart_pause(rule, streak) <= max(LONGEST_RESTART_PAUSE, delay)
    assert restart_pause(rule, streak) <= restart_pause(rule, streak + 1)


@given(st.integers(0, 20), st.integers(1, 20), st.floats(0, 100))
def test_never_more_in_a_row_than_the_limit(streak: int, limit: int, lasted: float) -> None:
    verdict = after_end(meta(restart="always", restart_limit=limit), over(lasted=lasted), streak)
    assert verdict.gave_up or verdict.streak <= limit


def test_those_whose_time_has_come() -> None:
    early, late = process(1, Restarting(over(), 5.0)), process(2, Restarting(over(), 9.0))
    assert restarts_due([early, late, process(3), ended(4, 1.0)], now=5.0) == [early]
    assert next_restart([late, early, process(3)]) == 5.0
    assert next_restart([process(3)]) is None


def test_output_may_go_on_only_where_another_run_may_come() -> None:
    assert not may_run_again(process(1))
    assert may_run_again(process(1, restart="always"))
    assert may_run_again(process(1, Restarting(over(), 5.0)))
    assert not may_run_again(ended(1, 1.0, restart="always"))
