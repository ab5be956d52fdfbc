"""A watch in any order of events: every match is accounted for, and none is told too early or too late."""

from __future__ import annotations

import json

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.model.notices import watching
from holdfast.model.notices.watching import Disabled, MatchDigest, Notified, WatchOutcome, WatchRules, WatchState
from tests.model.found import matches

YEAR = 365 * 86400.0


class Watch(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.state = WatchState()
        self.numbers = WatchRules()
        self.now = 1e9
        self.found = self.told = self.notices = self.disabled = 0
        self.last: float | None = None
        """When it spoke last, by a clock that has not been set since."""

    @initialize(window=st.sampled_from([0.0, 1.0, 15.0]), strikes=st.integers(0, 4), budget=st.integers(0, 6))
    def begin(self, window: float, strikes: int, budget: int) -> None:
        self.numbers = WatchRules(window, strikes, budget)

    @rule(count=st.integers(1, 40), more=st.just(0) | st.integers(0, 5))
    def finds(self, count: int, more: int) -> None:
        was_over = self.state.disabled
        self.state, outcomes = watching.matched(self.state, matches(count, self.found), self.now, self.numbers, more)
        assert was_over <= (outcomes == [])
        self.found += 0 if was_over else count + more
        self.hear(outcomes)

    @rule(seconds=st.sampled_from([0.001, 0.5, 1.0, 5.0, 14.999, 15.0, 31.0]), looks=st.booleans())
    def waits(self, seconds: float, looks: bool) -> None:
        self.now += seconds
        if looks:
            self.state, outcomes = watching.elapsed(self.state, self.now, self.numbers)
            self.hear(outcomes)

    @rule(by=st.sampled_from([-50 * YEAR, -YEAR, -10.0, -0.01, 10.0, YEAR, 50 * YEAR]))
    def sets_the_clock(self, by: float) -> None:
        self.now += by
        self.last = None

    @rule()
    def is_saved_and_loaded(self) -> None:
        again = WatchState.from_json(json.loads(json.dumps(self.state.to_json())))
        assert again == self.state
        self.state = again

    @precondition(lambda self: self.state.held is not None)
    @rule()
    def ends(self) -> None:
        self.last = None
        self.state, outcomes = watching.ended(self.state, self.now)
        assert [type(outcome) for outcome in outcomes] == [MatchDigest]
        self.hear(outcomes)
        self.last = None

    def hear(self, outcomes: list[WatchOutcome]) -> None:
        for outcome in outcomes:
            match outcome:
                case Notified(found):
                    self.told += len(found)
                    self.speaks()
                case MatchDigest(held):
                    self.told += held.count
                    self.speaks()
                case Disabled(suppressed=suppressed):
                    self.told += suppressed
                    self.disabled += 1

    def speaks(self) -> None:
        assert not self.disabled
        assert self.last is None or self.now - self.last >= self.numbers.window - 1e-6, "once in a window"
        self.last = self.now
        self.notices += 1

    @invariant()
    def every_match_is_accounted_for(self) -> None:
        held = self.state.held.count if self.state.held is not None else 0
        assert self.told + held == self.found == self.state.matches

    @invariant()
    def the_end_of_the_watch_is_told_once(self) -> None:
        assert self.disabled == self.state.disabled == self.state.notify_on

    @invariant()
    def the_budget_holds(self) -> None:
        assert self.notices == self.state.notified
        assert not self.numbers.budget or self.notices <= self.numbers.budget

    @invariant()
    def nothing_is_held_back_for_longer_than_a_window(self) -> None:
        seen, _ = watching.elapsed(self.state, self.now, self.numbers)
        due = watching.next_due(seen)
        assert (due is not None) == (seen.held is not None)
        assert due is None or due <= self.now + self.numbers.window
        assert watching.elapsed(seen, self.now + self.numbers.window, self.numbers)[0].held is None

    @invariant()
    def a_silent_watch_is_ready_for_a_match_after_a_window(self) -> None:
        seen, _ = watching.elapsed(self.state, self.now, self.numbers)
        later = self.now + self.numbers.window
        if seen.held is None and not seen.disabled and not (0 < self.numbers.budget <= seen.notified):
            _, outcomes = watching.matched(seen, matches(1), later, self.numbers)
            assert outcomes == [Notified(tuple(matches(1)), 0)]


TestWatch = Watch.TestCase
TestWatch.settings = settings(max_examples=150, stateful_step_count=40)
