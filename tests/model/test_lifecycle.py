"""The state table, and what is told of a process that went through it."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from holdfast.model.lifecycle import (
    ALLOWED,
    NEXT,
    ChildEnded,
    ChildStarted,
    Ended,
    EndReason,
    Exited,
    Fact,
    ForceUsed,
    LaunchFailed,
    Lost,
    NeverRan,
    PredecessorFailed,
    Queued,
    Requested,
    Restarting,
    RestartPlanned,
    Running,
    Signaled,
    State,
    Status,
    StopAsked,
    Stopping,
    StopReason,
    StopRequest,
    Unseen,
    WitnessesGone,
    WrongStep,
    advance,
    end_signal,
    exit_code,
    reason,
    stop_of,
)

TIMES = st.floats(min_value=0, max_value=4e9)
STATUSES: st.SearchStrategy[Status] = st.one_of(
    st.builds(Exited, st.integers(0, 255)), st.builds(Signaled, st.integers(1, 64)), st.just(Unseen())
)
FACTS: st.SearchStrategy[Fact] = st.one_of(
    st.builds(ChildStarted, st.integers(1, 1 << 22), TIMES),
    st.builds(LaunchFailed, TIMES),
    st.builds(PredecessorFailed, st.text(max_size=8), TIMES),
    st.builds(StopAsked, st.none() | st.text(max_size=8), st.sampled_from(get_args(StopReason)), TIMES),
    st.just(ForceUsed()),
    st.builds(ChildEnded, STATUSES, TIMES),
    st.builds(WitnessesGone, TIMES),
    st.builds(RestartPlanned, TIMES),
)


def after(*facts: Fact) -> State:
    state: State = Requested()
    for fact in facts:
        state = advance(state, fact)
    return state


STARTED = ChildStarted(4711, 100.0)
KILL = StopAsked("agent-7", "killed", 101.0)


def test_every_state_has_its_row_in_the_table_and_every_fact_its_use() -> None:
    assert set(ALLOWED) == set(get_args(State))
    assert {fact for facts in ALLOWED.values() for fact in facts} == set(get_args(Fact))


@pytest.mark.parametrize(
    "state",
    [
        Requested(),
        Queued(),
        Running(1, 0.0),
        Stopping(1, 0.0, StopRequest(None, "killed", 0.0)),
        Ended(Lost(), 0.0),
        Restarting(Ended(Exited(1), 0.0), 1.0),
    ],
)
@pytest.mark.parametrize(
    "fact",
    [
        STARTED,
        LaunchFailed(1.0),
        PredecessorFailed("proc_000000000001", 1.0),
        KILL,
        ForceUsed(),
        ChildEnded(Exited(0), 1.0),
        WitnessesGone(1.0),
        RestartPlanned(2.0),
    ],
)
def test_a_fact_leads_where_the_table_says_or_is_refused(state: State, fact: Fact) -> None:
    following = NEXT[type(state)].get(type(fact))
    if following is None:
        with pytest.raises(WrongStep):
            advance(state, fact)
    else:
        assert type(advance(state, fact)) is following


def test_a_child_that_exits_42_when_asked_to_end_was_killed_and_exited_42() -> None:
    state = after(STARTED, KILL, ChildEnded(Exited(42), 102.0))
    assert (reason(state), exit_code(state), end_signal(state)) == ("killed", 42, None)
    assert stop_of(state) == StopRequest("agent-7", "killed", 101.0)


def test_an_unrequested_exit_has_the_reason_exited() -> None:
    state = after(STARTED, ChildEnded(Exited(3), 102.0))
    assert (reason(state), exit_code(state), end_signal(state), stop_of(state)) == ("exited", 3, None, None)


def test_an_unrequested_signal_has_no_owner() -> None:
    state = after(STARTED, ChildEnded(Signaled(9), 102.0))
    assert (reason(state), exit_code(state), end_signal(state), stop_of(state)) == ("signaled", None, 9, None)


@pytest.mark.parametrize(
    ("asked", "told"),
    [("killed", "killed"), ("session_end", "killed"), ("daemon_stop", "killed"), ("deadline", "deadline")],
)
def test_a_requested_end_is_reported_as_one(asked: StopReason, told: EndReason) -> None:
    assert reason(after(STARTED, StopAsked(None, asked, 1.0), ChildEnded(Signaled(15), 2.0))) == told


def test_the_first_who_asked_is_remembered() -> None:
    state = after(
        STARTED, StopAsked(None, "deadline", 1.0), StopAsked("late", "killed", 2.0), ChildEnded(Exited(0), 3.0)
    )
    assert stop_of(state) == StopRequest(None, "deadline", 1.0)


def test_force_is_noted_also_when_the_leader_had_gone_willingly() -> None:
    state = after(STARTED, KILL, ChildEnded(Signaled(15), 2.0), ForceUsed())
    assert (stop := stop_of(state)) is not None
    assert (stop.forced, end_signal(state)) == (True, 15)


def test_an_unobserved_end_is_unknown_and_has_no_time() -> None:
    state = after(STARTED, ChildEnded(Unseen(), 5.0))
    assert (reason(state), exit_code(state), end_signal(state)) == ("lost", None, None)
    assert isinstance(state, Ended)
    assert (state.ended_at, state.known_at) == (None, 5.0)


def test_an_end_that_was_asked_for_but_not_seen_is_a_kill_with_unknown_status() -> None:
    state = after(STARTED, KILL, ChildEnded(Unseen(), 5.0))
    assert (reason(state), exit_code(state), end_signal(state)) == ("killed", None, None)


def test_what_is_lost_is_lost_even_if_its_end_was_asked_for() -> None:
    state = after(STARTED, KILL, WitnessesGone(9.0))
    assert reason(state) == "lost"
    assert stop_of(state) == StopRequest("agent-7", "killed", 101.0)


def test_a_launch_that_failed_never_ran() -> None:
    state = after(LaunchFailed(1.0))
    assert isinstance(state, Ended)
    assert (state.outcome, state.pid, reason(state)) == (NeverRan(), None, "failed_start")


CRASHED = (STARTED, ChildEnded(Exited(3), 102.0))


def test_between_two_runs_the_last_end_is_not_shown() -> None:
    state = after(*CRASHED, RestartPlanned(103.0))
    assert (reason(state), exit_code(state), stop_of(state)) == (None, None, None)
    assert after(*CRASHED, RestartPlanned(103.0), ChildStarted(4712, 104.0)) == Running(4712, 104.0)


def test_a_kill_between_two_runs_makes_the_last_end_final() -> None:
    state = after(*CRASHED, RestartPlanned(103.0), KILL)
    assert (reason(state), exit_code(state)) == ("killed", 3)
    assert isinstance(state, Ended)
    assert (state.started_at, state.ended_at, state.stop) == (100.0, 102.0, StopRequest("agent-7", "killed", 101.0))


@pytest.mark.parametrize("fact", [LaunchFailed(104.0), WitnessesGone(104.0)])
def test_what_cannot_be_run_again_ended_as_it_ended(fact: Fact) -> None:
    assert after(*CRASHED, RestartPlanned(103.0), fact) == after(*CRASHED)


def test_a_stop_for_a_restart_gives_way_to_one_for_good() -> None:
    restart = StopAsked("me", "restart", 100.5)
    assert stop_of(after(STARTED, restart, KILL)) == StopRequest("agent-7", "killed", 101.0)
    assert stop_of(after(STARTED, KILL, restart)) == StopRequest("agent-7", "killed", 101.0)


class Life(RuleBasedStateMachine):
    """Any facts in any order: refused ones change nothing, and what was once true of a run stays true."""

    state: State

    @initialize(is_queued=st.booleans())
    def begin(self, is_queued: bool) -> None:
        self.state = Queued() if is_queued else Requested()
        self.first_stop: StopAsked | None = None
        self.last_stop: StopAsked | None = None
        self.status: Status | None = None
        self.started: ChildStarted | None = None

    @rule(fact=FACTS)
    def happen(self, fact: Fact) -> None:
        before = self.state
        try:
            self.state = advance(before, fact)
        except WrongStep:
            assert type(fact) not in ALLOWED[type(before)]
            assert self.state is before
            return
        assert type(self.state) is NEXT[type(before)][type(fact)]
        match fact:
            case ChildStarted():
                self.started, self.first_stop, self.status = fact, None, None
            case RestartPlanned() if isinstance(before, Ended):
                self.last_stop, self.first_stop = self.first_stop, None
            case LaunchFailed() | WitnessesGone() if isinstance(before, Restarting):
                self.first_stop = self.last_stop
            case StopAsked() if self.first_stop is None or self.first_stop.reason == "restart" != fact.reason:
                self.first_stop = fact
            case ChildEnded(status=status):
                self.status = status

    @invariant()
    def who_asked_first_is_never_overwritten(self) -> None:
        if self.first_stop is not None:
            stop = stop_of(self.state)
            assert stop is not None
            assert (stop.by, stop.reason, stop.at) == (self.first_stop.by, self.first_stop.reason, self.first_stop.at)
        else:
            assert stop_of(self.state) is None

    @invariant()
    def code_and_signal_are_the_kernels(self) -> None:
        status = None if isinstance(self.state, Restarting) else self.status
        assert exit_code(self.state) == (status.code if isinstance(status, Exited) else None)
        assert end_signal(self.state) == (status.signal if isinstance(status, Signaled) else None)

    @invariant()
    def only_an_ended_one_has_a_reason(self) -> None:
        assert (reason(self.state) is not None) == isinstance(self.state, Ended)

    @invariant()
    def the_pid_stays(self) -> None:
        if self.started is not None:
            assert not isinstance(self.state, (Requested, Queued))
            known = self.state.last if isinstance(self.state, Restarting) else self.state
            assert known.pid == self.started.pid


TestLife = Life.TestCase
