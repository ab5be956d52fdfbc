"""Matches as tests need them, and a process that finds some, in simulated time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.model.notices import watching
from holdfast.model.notices.watching import (
    Disabled,
    MatchDigest,
    Notified,
    WatchMatch,
    WatchOutcome,
    WatchRules,
    WatchState,
)


def match(number: int, stream: str = "out", pattern: str = "ERROR") -> WatchMatch:
    """The match with this number: lines of ten bytes, one after another."""
    return WatchMatch(stream, number * 10, number * 10 + 9, pattern, f"ERROR {number:03d}"[:9])


def matches(count: int, start: int = 0) -> list[WatchMatch]:
    return [match(start + number) for number in range(count)]


class Heard(NamedTuple):
    """One notification, in short."""

    at: float
    what: str
    of: int


def heard(at: float, outcome: WatchOutcome) -> Heard:
    match outcome:
        case Notified(found, 0):
            return Heard(at, "match", len(found))
        case MatchDigest(held):
            return Heard(at, "digest", held.count)
        case Disabled(suppressed=suppressed):
            return Heard(at, "disabled", suppressed)
        case _:
            raise AssertionError(outcome)


def live(times: Sequence[float], rules: WatchRules, until: float) -> tuple[WatchState, list[Heard]]:
    """A process that prints one matching line at each of the times, with somebody who wakes when something is due."""
    state, told = WatchState(), list[Heard]()
    for number, at in enumerate([*times, until]):
        while (due := watching.next_due(state)) is not None and due <= at:
            state, outcomes = watching.elapsed(state, due, rules)
            told += [heard(due, outcome) for outcome in outcomes]
        found = [match(number)] if number < len(times) else []
        state, outcomes = watching.matched(state, found, at, rules)
        told += [heard(at, outcome) for outcome in outcomes]
    return state, told
