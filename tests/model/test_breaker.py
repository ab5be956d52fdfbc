"""The breaker across all processes."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from holdfast.model.notices import breaker, watching
from holdfast.model.notices.breaker import Breaker, BreakerRules, admit, next_due, release, rename, take, transfer
from holdfast.model.notices.watching import Held, MatchDigest, Notified, WatchState
from holdfast.records import names
from tests.model.found import match, matches
from tests.model.test_watching import ANY_JSON

RULES = BreakerRules()
ONE = [match(0)]
HELD = Held(1, match(0), match(0))


def storm(count: int, now: float = 0.0, sessions: int = 3) -> tuple[Breaker, list[bool], list[bool]]:
    """So many processes of several sessions, each with one match."""
    state, admitted, tripped = Breaker(), list[bool](), list[bool]()
    for number in range(count):
        state, may, trips = admit(state, f"s{number % sessions}", f"p{number}", ONE, now, RULES)
        admitted.append(may)
        tripped.append(trips)
    return state, admitted, tripped


def test_forty_processes_at_once() -> None:
    state, admitted, tripped = storm(40, now=100.0)
    assert admitted == [True] * 15 + [False] * 25
    assert tripped == [False] * 15 + [True] + [False] * 24
    assert (state.tripper, state.tripped_at, next_due(state)) == ("s0", 100.0, 130.0)
    assert release(state, 129.9) == (state, None)
    after, released = release(state, 130.0)
    assert after == Breaker()
    assert released is not None
    assert (released.count, released.processes, released.tripper, released.tripped_at) == (25, 25, "s0", 100.0)
    assert {session: len(by) for session, by in released.sessions.items()} == {"s0": 9, "s1": 8, "s2": 8}
    assert sum(held.count for by in released.sessions.values() for held in by.values()) == 25
    assert release(after, 200.0) == (after, None), "once"


def test_a_release_is_sent_to_owners_with_something_held_back() -> None:
    state, _, _ = storm(15)
    state, _, _ = admit(state, "late", "p", ONE, 1.0, RULES)
    _, released = release(state, 31.0)
    assert released is not None and list(released.sessions) == ["late"]


def test_fifteen_in_ten_seconds_are_not_too_many() -> None:
    state, admitted, _ = storm(15)
    assert all(admitted)
    assert admit(state, "s", "p", ONE, 9.999, RULES)[1:] == (False, True)
    assert admit(state, "s", "p", ONE, 10.0, RULES)[1:] == (True, False)


def test_a_steady_rate_below_the_limit_never_trips() -> None:
    state = Breaker()
    for number in range(500):
        state, may, _ = admit(state, "s", "p", ONE, number * 0.7, RULES)
        assert may
    assert len(state.notified_at) <= 15


def test_after_a_release_counting_begins_anew() -> None:
    state, _ = release(storm(40)[0], 30.0)
    for number in range(15):
        state, may, _ = admit(state, "s", f"p{number}", ONE, 30.0, RULES)
        assert may


def test_a_match_between_timeout_and_release_is_part_of_the_release() -> None:
    state, may, _ = admit(storm(16)[0], "s", "p", ONE, 31.0, RULES)
    assert not may
    _, released = release(state, 31.0)
    assert released is not None and released.count == 2


def test_more_of_the_same_process_is_one_digest() -> None:
    state, _, _ = storm(16)
    state, _, _ = admit(state, "s0", "p15", matches(3, 5), 1.0, RULES)
    state, _, _ = admit(state, "s0", "p15", Held(7, match(9), match(15)), 2.0, RULES)
    _, released = release(state, 30.0)
    assert released is not None
    assert released.sessions == {"s0": {"p15": Held(11, match(0), match(15))}}
    assert (released.count, released.processes) == (11, 1)


def test_lines_are_held_back_in_short() -> None:
    state, _, _ = admit(storm(16)[0], "s", "p", [watching.WatchMatch("out", 0, 9, "x", "x" * 2000)], 0.0, RULES)
    held = state.held["s"]["p"]
    assert len(held.first.output) == len(held.newest.output) == breaker.MOST_CHARACTERS
    assert held.first.is_cut


def test_the_end_of_a_process_takes_its_part_out() -> None:
    state, taken = take(storm(40)[0], "s0", "p15")
    assert taken == HELD
    assert take(state, "s0", "p15") == (state, None)
    assert take(state, "s1", "p18") == (state, None), "not of that session"
    _, released = release(state, 30.0)
    assert released is not None and "p15" not in released.sessions["s0"]
    assert released.count == 25, "the count of a release is of all that were held back"


def test_a_release_has_a_count_also_when_all_was_notified_by_then() -> None:
    state, _ = take(storm(16)[0], "s0", "p15")
    assert state.held == {}
    _, released = release(state, 30.0)
    assert released == breaker.Released(1, 1, {}, "s0", 0.0)


def test_a_release_goes_to_the_new_owner_of_a_transferred_process() -> None:
    state = transfer(storm(40)[0], "p15", "other")
    assert state.held["other"] == {"p15": HELD}
    assert "p15" not in state.held["s0"]
    assert transfer(state, "p15", "other") == state
    assert transfer(state, "unknown", "other") == state


def test_a_release_goes_to_the_new_name_of_a_session() -> None:
    before = storm(40)[0]
    state = rename(before, "s0", "new")
    assert (state.held["new"], state.tripper) == (before.held["s0"], "new")
    assert "s0" not in state.held
    joined = rename(state, "new", "s1")
    assert len(joined.held["s1"]) == 17
    assert rename(state, "s1", "s1") == state
    assert rename(state, "unknown", "s1") == state


def test_settings_that_turn_it_off() -> None:
    off, state = BreakerRules(limit=0), Breaker()
    for number in range(1000):
        state, may, _ = admit(state, "s", f"p{number}", ONE, 0.0, off)
        assert may
    assert state == Breaker(), "and nothing is kept for it"


def test_without_content_there_is_no_notification() -> None:
    assert admit(Breaker(), "s", "p", [], 0.0, RULES) == (Breaker(), True, False)


YEAR = 365 * 86400.0


@pytest.mark.parametrize("back", [0.01, 10.0, YEAR, 50 * YEAR])
def test_a_clock_that_is_set_back_is_silent_for_one_silence_at_most(back: float) -> None:
    now = 100.0 - back
    state, released = release(storm(40, now=100.0)[0], now)
    due = next_due(state)
    assert released is None and due is not None and due <= now + RULES.silence
    assert release(state, due)[1] is not None
    assert state.tripped_at == 100.0, "which trip it was does not change"


def test_notifications_of_a_future_that_was_none_do_not_count() -> None:
    state, _, _ = storm(15, now=1e9)
    assert admit(state, "s", "p", ONE, 5.0, RULES)[1:] == (True, False)


@pytest.mark.parametrize("state", [Breaker(), storm(9)[0], storm(40)[0], storm(40, now=7.25)[0]])
def test_a_breaker_comes_back_as_it_was(state: Breaker) -> None:
    assert Breaker.from_json(json.loads(json.dumps(state.to_json()))) == state


FIELDS = st.sampled_from([*names(Breaker), "told_at"])
SHELVES = st.dictionaries(
    st.text(max_size=3),
    st.dictionaries(st.text(max_size=3), ANY_JSON | st.just(HELD.to_json()), max_size=3),
    max_size=3,
)


@given(ANY_JSON | st.dictionaries(FIELDS, ANY_JSON | SHELVES), st.floats(0, 1e10))
def test_any_written_state_can_be_read_and_continued(value: object, now: float) -> None:
    state = Breaker.from_json(value)
    held = sum(one.count for by in state.held.values() for one in by.values())
    state, may, _ = admit(state, "s", "p", ONE, now, RULES)
    due = next_due(state)
    assert (due is None) == may
    if due is not None:
        _, released = release(state, max(due, now))
        assert released is not None and released.count >= held + 1, "nothing gets stuck"
    json.dumps(state.to_json(), allow_nan=False)


def test_forty_noisy_processes_with_watches_that_end() -> None:
    """Watches, the breaker and ends together: what each owner hears adds up to all that was printed."""
    heard: Counter[str] = Counter()
    state = Breaker()
    watches = {f"p{number}": WatchState() for number in range(40)}
    owner = {name: f"s{number % 4}" for number, name in enumerate(watches)}
    for name in watches:
        watches[name], [told] = watching.matched(watches[name], matches(2), 0.0, watching.WatchRules())
        assert isinstance(told, Notified)
        state, may, _ = admit(state, owner[name], name, told.matches, 0.0, RULES)
        heard[owner[name]] += 2 * may
        watches[name], nothing = watching.matched(watches[name], matches(3, 2), 1.0, watching.WatchRules())
        assert nothing == []
    for name in list(watches)[:30]:
        state, before = take(state, owner[name], name)
        heard[owner[name]] += before.count if before is not None else 0
        watches[name], [last] = watching.ended(watches[name], 5.0)
        assert isinstance(last, MatchDigest)
        heard[owner[name]] += last.held.count
    for name in list(watches)[30:]:
        watches[name], [due] = watching.elapsed(watches[name], 15.0, watching.WatchRules())
        assert isinstance(due, MatchDigest)
        state, may, _ = admit(state, owner[name], name, due.held, 15.0, RULES)
        assert not may
    _, released = release(state, 30.0)
    assert released is not None and released.count == 25 * 2 + 10 * 3
    for session, by in released.sessions.items():
        heard[session] += sum(held.count for held in by.values())
    assert heard == {f"s{number}": 50 for number in range(4)}


SESSIONS, PROCESSES = st.sampled_from(["a", "b", "c"]), st.sampled_from(["p1", "p2", "p3", "p4", "p5"])


class Storm(RuleBasedStateMachine):
    """In any order of events every match is told, or held back for somebody, and no silence lasts too long."""

    def __init__(self) -> None:
        super().__init__()
        self.state = Breaker()
        self.numbers = BreakerRules(limit=3)
        self.now = 1e9
        self.found = self.told = self.suppressed = 0
        self.recent: list[float] = []

    @rule(session=SESSIONS, process=PROCESSES, count=st.integers(1, 5), in_short=st.booleans())
    def finds(self, session: str, process: str, count: int, in_short: bool) -> None:
        found = matches(count)
        news = Held.of(found) if in_short else found
        was_tripped = self.state.tripped_at is not None
        self.state, may, trips = admit(self.state, session, process, news, self.now, self.numbers)
        assert trips == (not may and not was_tripped)
        self.found += count
        self.told += count * may
        self.suppressed += count * (not may)
        if may:
            self.recent = [at for at in [*self.recent, self.now] if at > self.now - self.numbers.window]
            assert len(self.recent) <= self.numbers.limit

    @rule(seconds=st.sampled_from([0.1, 2.0, 9.9, 10.0, 29.9, 31.0]))
    def waits(self, seconds: float) -> None:
        self.now += seconds
        self.state, released = release(self.state, self.now)
        if released is not None:
            assert released.count == self.suppressed
            self.told += sum(held.count for by in released.sessions.values() for held in by.values())
            self.suppressed, self.recent = 0, []

    @rule(by=st.sampled_from([-50 * YEAR, -10.0, -0.01, 10.0, YEAR]))
    def sets_the_clock(self, by: float) -> None:
        self.now += by
        self.recent = []

    @rule(session=SESSIONS, process=PROCESSES)
    def ends(self, session: str, process: str) -> None:
        self.state, taken = take(self.state, session, process)
        self.told += taken.count if taken is not None else 0

    @rule(process=PROCESSES, to=SESSIONS)
    def is_handed_over(self, process: str, to: str) -> None:
        self.state = transfer(self.state, process, to)
        assert all(process not in by or session == to for session, by in self.state.held.items())

    @rule(old=SESSIONS, new=SESSIONS)
    def is_renamed(self, old: str, new: str) -> None:
        self.state = rename(self.state, old, new)
        assert old == new or (old not in self.state.held and self.state.tripper != old)

    @rule()
    def is_saved_and_loaded(self) -> None:
        again = Breaker.from_json(json.loads(json.dumps(self.state.to_json())))
        assert again == self.state
        self.state = again

    @invariant()
    def every_match_is_accounted_for(self) -> None:
        held = sum(one.count for by in self.state.held.values() for one in by.values())
        assert self.told + held == self.found
        assert all(self.state.held.values()), "no owner without anything"

    @invariant()
    def no_silence_lasts_longer_than_it_should(self) -> None:
        seen, _ = release(self.state, self.now)
        due = next_due(seen)
        assert due is None or due <= self.now + self.numbers.silence
        assert release(seen, self.now + self.numbers.silence)[0].held == {}


TestStorm = Storm.TestCase
TestStorm.settings = settings(max_examples=150, stateful_step_count=40)
