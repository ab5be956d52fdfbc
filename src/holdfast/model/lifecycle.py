"""The life cycle of a process: states, facts, and the one table that says which fact may happen in which state.

`advance` is the only way from one state to the next. `docs/lifecycle.md` is drawn from ALLOWED and NEXT.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, assert_never

from holdfast.records import Struct, replace

#: After a stop for a `restart` the command runs again, unless its end is requested meanwhile.
StopReason: TypeAlias = Literal["killed", "deadline", "session_end", "daemon_stop", "restart"]
EndReason: TypeAlias = Literal["exited", "signaled", "killed", "deadline", "oom", "lost", "failed_start", "skipped"]


# How it ended, as reported by the kernel.


class Exited(Struct, frozen=True):
    """It exited with this code."""

    code: int


class Signaled(Struct, frozen=True):
    """A signal ended it; its sender is unknown."""

    signal: int


class Unseen(Struct, frozen=True):
    """It is gone, and its status is unknown."""


class Lost(Struct, frozen=True):
    """How it ended cannot be known."""


class NeverRan(Struct, frozen=True):
    """It was not started: it could not be, or its end was requested before."""


class Skipped(Struct, frozen=True):
    """It was not started, because the process that it waited for did not succeed."""

    after: str


Status: TypeAlias = Exited | Signaled | Unseen
Outcome: TypeAlias = Status | Lost | NeverRan | Skipped


class StopRequest(Struct, frozen=True):
    """The first request to end it: by whom, why and when, and whether SIGKILL was needed."""

    by: str | None
    reason: StopReason
    at: float
    forced: bool = False


# States.


class Requested(Struct, frozen=True):
    """Its start was requested; whether it runs is not known yet."""


class Queued(Struct, frozen=True):
    """Its start is recorded, and waits for its turn in a queue or for the end of other processes."""


class Running(Struct, frozen=True):
    """The command runs."""

    pid: int
    at: float


class Stopping(Struct, frozen=True):
    """It runs, and its end was requested."""

    pid: int
    at: float
    stop: StopRequest


class Ended(Struct, frozen=True):
    """It is over. The status from the kernel and the request to end it are both recorded."""

    outcome: Outcome
    known_at: float
    """When the end became known; an end that was not observed has no `ended_at`."""
    pid: int | None = None
    started_at: float | None = None
    ended_at: float | None = None
    stop: StopRequest | None = None
    oom: bool = False
    """Whether the kernel killed some of its processes because memory ran out."""


class Restarting(Struct, frozen=True):
    """Between two runs: the last one is over, and the next is scheduled. It counts as running."""

    last: Ended
    due: float


State: TypeAlias = Requested | Queued | Running | Stopping | Ended | Restarting


# Facts.


class ChildStarted(Struct, frozen=True):
    """The command was started as this process."""

    pid: int
    at: float


class LaunchFailed(Struct, frozen=True):
    """The command could not be started."""

    at: float


class StopAsked(Struct, frozen=True):
    """Its end was requested. The first request is recorded; later ones change nothing."""

    by: str | None
    reason: StopReason
    at: float


class ForceUsed(Struct, frozen=True):
    """SIGKILL was sent to some of the tree after the grace period."""


class ChildEnded(Struct, frozen=True):
    """The command's own process is gone."""

    status: Status
    at: float
    oom: bool = False
    """Whether the kernel killed some of its processes because memory ran out."""


class WitnessesGone(Struct, frozen=True):
    """No part of holdfast that could have observed the end is left."""

    at: float


class RestartPlanned(Struct, frozen=True):
    """It will be run again at this time: by its restart policy, or by request."""

    due: float


class PredecessorFailed(Struct, frozen=True):
    """The process that it waited for did not succeed."""

    after: str
    at: float


Fact: TypeAlias = (
    ChildStarted
    | LaunchFailed
    | PredecessorFailed
    | StopAsked
    | ForceUsed
    | ChildEnded
    | WitnessesGone
    | RestartPlanned
)

#: Which fact leads where. A fact that is not listed under a state cannot happen in it.
NEXT: dict[type[State], dict[type[Fact], type[State]]] = {
    Requested: {ChildStarted: Running, LaunchFailed: Ended, WitnessesGone: Ended},
    Queued: {ChildStarted: Running, LaunchFailed: Ended, PredecessorFailed: Ended, StopAsked: Ended},
    Running: {StopAsked: Stopping, ChildEnded: Ended, WitnessesGone: Ended},
    Stopping: {StopAsked: Stopping, ForceUsed: Stopping, ChildEnded: Ended, WitnessesGone: Ended},
    # SIGKILL may be needed for the rest of the tree after its first process has ended.
    Ended: {ForceUsed: Ended, RestartPlanned: Restarting},
    Restarting: {
        ChildStarted: Running,
        RestartPlanned: Restarting,
        StopAsked: Ended,
        LaunchFailed: Ended,
        WitnessesGone: Ended,
    },
}

ALLOWED: dict[type[State], frozenset[type[Fact]]] = {state: frozenset(facts) for state, facts in NEXT.items()}


class WrongStep(Exception):
    """A fact that cannot happen in this state."""

    def __init__(self, state: State, fact: Fact) -> None:
        super().__init__(f"{type(fact).__name__} cannot happen to a process that is {type(state).__name__}")
        self.state = state
        self.fact = fact


def advance(state: State, fact: Fact) -> State:
    """The state after a fact. Raises WrongStep where the table does not allow it."""
    if type(fact) not in ALLOWED[type(state)]:
        raise WrongStep(state, fact)
    if isinstance(state, Restarting) and not isinstance(fact, ChildStarted):
        return _no_longer_restarting(state, fact)
    match fact:
        case ChildStarted(pid=pid, at=at):
            return Running(pid, at)
        case RestartPlanned(due=due):
            assert isinstance(state, Ended)
            return Restarting(state, due)
        case StopAsked():
            return _stopping(state, fact)
        case ForceUsed():
            return _forced(state)
        case LaunchFailed(at=at):
            return _ended(state, NeverRan(), at)
        case PredecessorFailed(after=after, at=at):
            return _ended(state, Skipped(after), at)
        case ChildEnded(status=status, at=at, oom=oom):
            return _ended(state, status, at, oom)
        case WitnessesGone(at=at):
            return _ended(state, Lost(), at)
        case _:
            assert_never(fact)


def _no_longer_restarting(state: Restarting, fact: Fact) -> State:
    """The last end stays; the request not to run it again is recorded."""
    match fact:
        case RestartPlanned(due=due):
            return replace(state, due=due)
        case StopAsked():
            return replace(state.last, known_at=fact.at, stop=StopRequest(fact.by, fact.reason, fact.at))
        case _:
            return state.last


def _stopping(state: State, asked: StopAsked) -> State:
    if isinstance(state, Queued):
        return Ended(NeverRan(), asked.at, ended_at=asked.at, stop=StopRequest(asked.by, asked.reason, asked.at))
    if isinstance(state, Stopping) and not (state.stop.reason == "restart" != asked.reason):
        return state
    assert isinstance(state, (Running, Stopping))
    return Stopping(state.pid, state.at, StopRequest(asked.by, asked.reason, asked.at))


def _forced(state: State) -> State:
    if isinstance(state, (Stopping, Ended)) and state.stop is not None:
        return replace(state, stop=replace(state.stop, forced=True))
    return state


def _ended(state: State, outcome: Outcome, at: float, oom: bool = False) -> State:
    ended_at = None if isinstance(outcome, (Unseen, Lost)) else at
    if isinstance(state, (Running, Stopping)):
        return Ended(outcome, at, state.pid, state.at, ended_at, stop_of(state), oom)
    return Ended(outcome, at, ended_at=ended_at)


# The fields that clients see.


def reason(state: State) -> EndReason | None:
    """Why it ended; None while it has not. A requested end is `killed` or `deadline`, with any status."""
    if not isinstance(state, Ended):
        return None
    match state.outcome:
        case NeverRan():
            return "failed_start" if state.stop is None else "killed"
        case Skipped():
            return "skipped"
        case Lost():
            return "lost"
        case _ if state.stop is not None:
            return "deadline" if state.stop.reason == "deadline" else "killed"
        case _ if state.oom:
            return "oom"
        case Exited():
            return "exited"
        case Signaled():
            return "signaled"
        case Unseen():
            return "lost"
        case _:
            assert_never(state.outcome)


def exit_code(state: State) -> int | None:
    """The kernel's exit code; None where there is none or it is unknown."""
    return state.outcome.code if isinstance(state, Ended) and isinstance(state.outcome, Exited) else None


def end_signal(state: State) -> int | None:
    """The signal that ended it, as reported by the kernel; else None."""
    return state.outcome.signal if isinstance(state, Ended) and isinstance(state.outcome, Signaled) else None


def stop_of(state: State) -> StopRequest | None:
    return state.stop if isinstance(state, (Stopping, Ended)) else None
