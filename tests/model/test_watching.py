"""How often a watch speaks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.notices.matches import MOST_CHARACTERS, MOST_LINES
from holdfast.model.notices.watching import (
    Disabled,
    Held,
    MatchDigest,
    Notified,
    WatchMatch,
    WatchRules,
    WatchState,
    broken,
    elapsed,
    ended,
    is_due,
    matched,
    next_due,
    scanned,
)
from holdfast.records import names, replace
from tests.model.found import Heard, live, match, matches

RULES = WatchRules()
#: Where a new watch stands after one match at the time 0.
OPEN = WatchState(window_until=15.0, notified=1, matches=1)


def test_the_first_match_is_notified_at_once() -> None:
    state, outcomes = matched(WatchState(), [match(0)], 0.0, RULES)
    assert outcomes == [Notified((match(0),), 0)]
    assert state == OPEN


def test_a_hundred_a_second_for_a_minute() -> None:
    state, told = live([number / 100 for number in range(6000)], RULES, until=60.0)
    assert told == [
        Heard(0.0, "match", 1),
        Heard(15.0, "digest", 1499),
        Heard(30.0, "digest", 1500),
        Heard(30.0, "disabled", 1),
    ]
    assert sum(one.of for one in told) == state.matches == 3001, "the rest came when nobody was looking any more"
    assert (state.disabled, state.notify_on, state.strikes, state.notified) == (True, True, 3, 3)
    assert state.suppressed == 3000


def test_five_errors_two_seconds_apart() -> None:
    state, told = live([0.0, 2.0, 4.0, 6.0, 8.0], RULES, until=600.0)
    assert told == [Heard(0.0, "match", 1), Heard(15.0, "digest", 4)]
    assert (state.strikes, state.matches, state.suppressed) == (1, 5, 4)


def test_a_line_every_twenty_seconds_never_strikes() -> None:
    state, told = live([20.0 * number for number in range(181)], RULES, until=3700.0)
    assert told == [Heard(20.0 * number, "match", 1) for number in range(181)]
    assert (state.strikes, state.suppressed, state.disabled) == (0, 0, False)


def test_a_budget_ends_what_never_strikes() -> None:
    state, told = live([20.0 * number for number in range(181)], WatchRules(budget=4), until=3700.0)
    assert told == [*(Heard(20.0 * number, "match", 1) for number in range(4)), Heard(80.0, "disabled", 1)]
    assert (state.disabled, state.notify_on, state.matches) == (True, True, 5)


def test_digests_count_towards_the_budget_and_the_matches_in_them_do_not() -> None:
    _, told = live([0.0, 1.0, 2.0, 3.0, 16.0], WatchRules(budget=2), until=600.0)
    assert told == [Heard(0.0, "match", 1), Heard(15.0, "digest", 3), Heard(16.0, "disabled", 1)]


def test_a_match_beyond_the_budget_ends_the_watch_at_once() -> None:
    _, outcomes = matched(OPEN, [match(1)], 2.0, WatchRules(budget=1))
    assert outcomes == [Disabled(1, 1, 2, "budget")]


def test_a_smaller_budget_after_a_restart_loses_nothing() -> None:
    state, _ = matched(OPEN, matches(3, 1), 2.0, RULES)
    assert elapsed(state, 15.0, WatchRules(budget=1))[1] == [Disabled(1, 3, 4, "budget")]


def test_a_quiet_window_ends_a_row_of_strikes() -> None:
    times = [0.0, 1.0, 16.0, 45.0, 46.0, 61.0, 91.0]
    state, told = live(times, RULES, until=600.0)
    assert told == [
        Heard(0.0, "match", 1),
        Heard(15.0, "digest", 1),
        Heard(30.0, "digest", 1),
        Heard(45.0, "match", 1),
        Heard(60.0, "digest", 1),
        Heard(75.0, "digest", 1),
        Heard(91.0, "match", 1),
    ]
    assert not state.disabled


def test_the_third_strike_comes_with_the_first_match_that_it_would_hold_back() -> None:
    state, told = live([0.0, 1.0, 16.0, 31.0, 32.0], RULES, until=600.0)
    assert told[-1] == Heard(31.0, "disabled", 1)
    assert state.matches == 4


def test_a_window_is_open_up_to_its_end() -> None:
    assert matched(OPEN, [match(1)], 14.999, RULES)[1] == []
    assert matched(OPEN, [match(1)], 15.0, RULES)[1] == [Notified((match(1),), 0)]


def test_a_window_that_held_back_none_needs_no_timer() -> None:
    assert next_due(OPEN) is None
    assert next_due(matched(OPEN, [match(1)], 3.0, RULES)[0]) == 15.0


def test_a_window_that_is_closed_late_opens_one_that_counts_from_then() -> None:
    state, _ = matched(OPEN, [match(1)], 3.0, RULES)
    late, outcomes = elapsed(state, 40.0, RULES)
    assert outcomes == [MatchDigest(Held(1, match(1), match(1)))]
    assert (late.window_until, late.strikes) == (55.0, 1)


def test_a_match_that_comes_before_the_one_who_closes_the_window_closes_it() -> None:
    state, _ = matched(OPEN, [match(1)], 3.0, RULES)
    state, outcomes = matched(state, [match(2)], 15.2, RULES)
    assert outcomes == [MatchDigest(Held(1, match(1), match(1)))]
    assert state.held == Held(1, match(2), match(2))
    assert state.strikes == 2


def test_lines_that_come_together_are_notified_together() -> None:
    state, outcomes = matched(WatchState(), matches(5), 0.0, RULES)
    assert outcomes == [Notified(tuple(matches(5)), 0)]
    assert (state.held, state.strikes) == (None, 0)


def test_what_does_not_fit_into_one_notification_is_held_back() -> None:
    state, outcomes = matched(WatchState(), matches(50), 0.0, RULES)
    assert outcomes == [Notified(tuple(matches(MOST_LINES)), 0)]
    assert state.held == Held(30, match(20), match(49))
    assert elapsed(state, 15.0, RULES)[1] == [MatchDigest(Held(30, match(20), match(49)))]


def test_long_lines_fill_a_notification_too_and_one_that_is_too_long_is_cut() -> None:
    long = [replace(match(number), output=f"{number}" * 800) for number in range(3)]
    assert matched(WatchState(), long, 0.0, RULES)[1] == [Notified(tuple(long[:2]), 0)]
    huge = replace(match(0), output="x" * 5000)
    _, [told] = matched(WatchState(), [huge, match(1)], 0.0, RULES)
    assert isinstance(told, Notified)
    assert told.matches == (replace(huge, output="x" * MOST_CHARACTERS, is_cut=True),)


@pytest.mark.parametrize("found", [1, 20, 50])
def test_matches_that_were_only_counted_are_held_back(found: int) -> None:
    state, outcomes = matched(WatchState(), matches(found), 0.0, RULES, more=1000)
    assert isinstance(outcomes[0], Notified) and state.held is not None
    assert len(outcomes[0].matches) + state.held.count == found + 1000 == state.matches
    assert state.held.newest == match(found - 1)


def test_the_notice_of_an_end_has_what_was_held_back() -> None:
    state, _ = matched(OPEN, matches(3, 1), 4.0, RULES)
    state, outcomes = ended(state, 5.0)
    assert outcomes == [MatchDigest(Held(3, match(1), match(3)))]
    assert (state.held, state.window_until, state.notified) == (None, None, 2)
    assert ended(state, 5.0)[1] == [], "once"


def test_an_end_with_nothing_held_back_is_silent() -> None:
    assert ended(OPEN, 4.0)[1] == []
    assert ended(WatchState(disabled=True), 4.0)[1] == []


def test_what_comes_after_the_end_of_the_watch_is_nothing() -> None:
    state = WatchState(disabled=True, notify_on=True, matches=7)
    assert matched(state, matches(9), 99.0, RULES) == (state, [])
    assert elapsed(state, 99.0, RULES) == (state, [])
    assert next_due(state) is None


def test_patterns_that_cannot_be_searched_for_end_the_watch_once() -> None:
    state, _ = matched(OPEN, matches(3, 1), 4.0, RULES)
    state, outcomes = broken(state)
    assert outcomes == [Disabled(1, 3, 4, "broken")]
    assert state.disabled and state.notify_on
    assert broken(state) == (state, [])


def test_no_strikes_and_no_window_as_settings() -> None:
    state, _ = live([number / 10 for number in range(6000)], WatchRules(strikes=0), until=601.0)
    assert not state.disabled
    _, told = live([0.0, 0.1, 0.2], WatchRules(window=0.0), until=1.0)
    assert told == [Heard(0.0, "match", 1), Heard(0.1, "match", 1), Heard(0.2, "match", 1)]
    state, outcomes = matched(OPEN, [match(1)], 1.0, WatchRules(strikes=1))
    assert outcomes == [Disabled(1, 1, 2, "strikes")]


YEAR = 365 * 86400.0


@pytest.mark.parametrize("back", [0.001, 10.0, YEAR, 50 * YEAR])
def test_a_clock_that_is_set_back_holds_back_for_one_window_at_most(back: float) -> None:
    state, _ = matched(OPEN, [match(1)], 4.0, RULES)
    now = 4.0 - back
    state, outcomes = elapsed(state, now, RULES)
    assert outcomes == []
    due = next_due(state)
    assert due is not None and due <= now + RULES.window
    assert elapsed(state, due, RULES)[1] == [MatchDigest(Held(1, match(1), match(1)))]


def test_a_wait_for_a_window_sees_that_the_clock_was_set_back() -> None:
    assert [is_due(15.0, now, RULES) for now in (-YEAR, -0.1, 0.0, 14.9, 15.0, YEAR)] == [1, 1, 0, 0, 1, 1]


def test_a_clock_that_is_set_forth_ends_a_window_early() -> None:
    state, _ = matched(OPEN, [match(1)], 4.0, RULES)
    assert elapsed(state, YEAR, RULES)[1] == [MatchDigest(Held(1, match(1), match(1)))]


def test_cursors_are_the_searchers() -> None:
    state = scanned(scanned(WatchState(), "out", 50), "err", 7)
    assert state.cursors == {"out": 50, "err": 7}
    after, _ = matched(state, matches(99), 0.0, RULES)
    assert after.cursors == state.cursors
    assert ended(after, 1.0)[0].cursors == state.cursors


def test_a_new_watch_takes_no_space() -> None:
    assert WatchState().to_json() == {}
    assert WatchState.from_json({}) == WatchState()


def test_a_state_comes_back_as_it_was() -> None:
    state, _ = matched(scanned(OPEN, "out", 9), [WatchMatch("err", 5, 9, "é\n", "\ud800 ü", True)], 0.0, RULES)
    assert WatchState.from_json(json.loads(json.dumps(state.to_json()))) == state
    late = WatchState(window_until=0.0)
    assert WatchState.from_json(late.to_json()) == late


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)
FIELDS = st.sampled_from([*names(WatchState), "told", "count", "first", "newest", "offset", "end", "output"])


@given(ANY_JSON | st.dictionaries(FIELDS, ANY_JSON | st.dictionaries(FIELDS, ANY_JSON)), st.floats(0, 1e10))
def test_any_written_state_can_be_read_and_continued(value: object, now: float) -> None:
    state = WatchState.from_json(value)
    after, outcomes = matched(state, matches(3), now, RULES)
    assert state.disabled or after.matches == state.matches + 3 or isinstance(outcomes[-1], Disabled)
    told = elapsed(after, now + RULES.window, RULES)[0]
    assert after.disabled or told.held is None, "nothing gets stuck"
    json.dumps(after.to_json(), allow_nan=False)


def test_one_bad_part_does_not_turn_a_watch_on_again() -> None:
    state = WatchState.from_json({"disabled": True, "strikes": "many", "held": [], "cursors": {"out": -1, "err": 4}})
    assert state == WatchState(disabled=True, cursors={"err": 4})


def test_what_is_held_back_without_a_window_is_due() -> None:
    held = Held(2, match(0), match(1))
    state = WatchState.from_json({"held": held.to_json()})
    assert next_due(state) == 0.0
    assert elapsed(state, 100.0, RULES)[1] == [MatchDigest(held)]
