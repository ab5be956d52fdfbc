"""How often a watch notifies: at most once per window, and never again after too many full windows. No I/O, no clock.

A match with no window open is notified at once and opens a window. Matches in a window are held back; when it closes
they are notified as one digest, which opens the next. A window that held some back is a strike, from the first of them
on; one that held back none resets the count. The last strike in a row ends the watch. Held matches are always notified,
or counted in the notice of the end of the watch; and at the end of the process they are notified at once.

Details:
- Lines that are found together while no window is open are one notification, as many as it shows. The rest
  is held back, like matches in the window.
- A window is open from its beginning up to, but not including, its end. One whose end is noticed late is closed then,
  and the window of its digest counts from then: two notifications are never closer than a window.
- The budget counts matches and digests that were notified, not the notice of the end of the watch. The first match
  beyond it ends the watch, like a last strike.
- With the limit 0, strikes never end the watch; with the budget 0 there is no budget.
- When the clock is set back, a window lasts for one window from then at most.
- After the end of the watch the output is not searched, so matches are not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from holdfast.model.notices import lenient
from holdfast.model.notices.matches import Held, WatchMatch, joined, that_fit
from holdfast.records import Struct, asdict, field, replace

__all__ = [
    "WatchMatch", "Held", "WatchState", "WatchRules",
    "Notified", "MatchDigest", "Disabled", "WatchOutcome",
    "matched", "next_due", "is_due", "elapsed", "ended", "broken", "scanned",
]  # fmt: skip

Reason: TypeAlias = Literal["strikes", "budget", "broken"]


#: Keys in the store that differ from the names here.
_KEYS = {"notified": "told"}


class WatchRules(Struct, frozen=True):
    window: float = 15.0
    """Seconds. With 0 every match is notified at once."""
    strikes: int = 3
    budget: int = 0
    """How many notifications a process may make."""


class WatchState(Struct, frozen=True):
    """The state of the watch of one process."""

    cursors: dict[str, int] = field(default_factory=dict)
    """For each stream, the offset up to which it was searched."""
    window_until: float | None = None
    held: Held | None = None
    """The matches that this window holds back."""
    strikes: int = 0
    """In a row, including this window."""
    notified: int = 0
    """Notifications so far."""
    matches: int = 0
    """Matches so far, notified or not."""
    suppressed: int = 0
    """Matches that were not notified at once."""
    disabled: bool = False
    notify_on: bool = False
    """Whether the end of the watch has turned on the notification of the end."""

    def to_json(self) -> dict[str, Any]:
        """The fields that differ from a new one: it is written with each change."""
        fields = {_KEYS.get(name, name): value for name, value in asdict(self).items() if value}
        if self.window_until is not None:
            fields["window_until"] = self.window_until
        if self.held is not None:
            fields["held"] = self.held.to_json()
        return fields

    @classmethod
    def from_json(cls, value: object) -> WatchState:
        """Never fails: an invalid part becomes that of a new one. Held matches are never lost."""
        fields = lenient.table(value)
        held, until = Held.from_json(fields.get("held")), lenient.moment(fields.get("window_until"))
        return cls(
            cursors=lenient.counts(fields.get("cursors")),
            window_until=0.0 if held is not None and until is None else until,
            held=held,
            disabled=fields.get("disabled") is True,
            notify_on=fields.get("notify_on") is True,
            notified=lenient.whole(fields.get("told")),
            **{name: lenient.whole(fields.get(name)) for name in ("strikes", "matches", "suppressed")},
        )


class Notified(Struct, frozen=True):
    """Matches to be notified at once, in full."""

    matches: tuple[WatchMatch, ...]
    suppressed: int = 0
    """Held back since the last notification: none, since a digest would have notified those."""


class MatchDigest(Struct, frozen=True):
    """Matches to be notified as a digest."""

    held: Held


class Disabled(Struct, frozen=True):
    """The watch has ended."""

    strikes: int
    suppressed: int
    """Matches that no other notification counts."""
    matches: int = 0
    """All matches that were found."""
    reason: Reason = "strikes"


WatchOutcome: TypeAlias = Notified | MatchDigest | Disabled


def matched(
    state: WatchState, found: Sequence[WatchMatch], now: float, rules: WatchRules, more: int = 0
) -> tuple[WatchState, list[WatchOutcome]]:
    """After some matches, in the order of the output, and `more` that were only counted.

    A window that is over by now is closed first. The caller moves the cursors: see `scanned`.
    """
    if not found:
        return state, []
    state, outcomes = elapsed(state, now, rules)
    if state.disabled:
        return state, outcomes
    state = replace(state, matches=state.matches + len(found) + more)
    rest = _rest(found, 0, more)
    if state.window_until is None and not _is_spent(state, rules):
        shown = that_fit(found)
        state, rest = _notified(state, now, rules), _rest(found, len(shown), more)
        outcomes.append(Notified(shown))
    if rest is not None:
        state, more_outcomes = _hold(state, rest, rules)
        outcomes += more_outcomes
    return state, outcomes


def next_due(state: WatchState) -> float | None:
    """When the next digest is due; None when there is none."""
    return state.window_until if state.held is not None and not state.disabled else None


def is_due(at: float, now: float, rules: WatchRules) -> bool:
    """Whether to call `elapsed`, when `next_due` was `at`: also when the clock was set back since."""
    return at <= now or at > now + rules.window


def elapsed(state: WatchState, now: float, rules: WatchRules) -> tuple[WatchState, list[WatchOutcome]]:
    """Close the window when its time is over; otherwise nothing changes."""
    if state.window_until is None or state.disabled:
        return state, []
    until = min(state.window_until, now + rules.window)
    if now < until:
        return (state if until == state.window_until else replace(state, window_until=until)), []
    if state.held is None:
        return replace(state, window_until=None, strikes=0), []
    if _is_spent(state, rules):
        return _disable(state, "budget")
    return replace(_notified(state, now, rules), held=None), [MatchDigest(state.held)]


def ended(state: WatchState, now: float) -> tuple[WatchState, list[WatchOutcome]]:
    """At the end of the process: held matches are notified now, also inside a window, and before the end.

    A later run begins with no window and no strike.
    """
    after = replace(state, window_until=None, held=None, strikes=0)
    if state.held is None:
        return after, []
    return replace(after, notified=state.notified + 1), [MatchDigest(state.held)]


def broken(state: WatchState) -> tuple[WatchState, list[WatchOutcome]]:
    """End the watch because its patterns cannot be searched for."""
    return (state, []) if state.disabled else _disable(state, "broken")


def scanned(state: WatchState, stream: str, upto: int) -> WatchState:
    """After a stream was searched up to this offset."""
    return replace(state, cursors={**state.cursors, stream: upto})


def _rest(found: Sequence[WatchMatch], shown: int, more: int) -> Held | None:
    """The matches after the first `shown` ones."""
    if len(found) > shown:
        return Held.of(found[shown:], more)
    return Held(more, found[-1].clipped(), found[-1].clipped()) if more else None


def _hold(state: WatchState, later: Held, rules: WatchRules) -> tuple[WatchState, list[WatchOutcome]]:
    is_first = state.held is None
    state = replace(
        state,
        held=joined(state.held, later),
        suppressed=state.suppressed + later.count,
        strikes=state.strikes + is_first,
    )
    if is_first and 0 < rules.strikes <= state.strikes:
        return _disable(state, "strikes")
    return _disable(state, "budget") if _is_spent(state, rules) else (state, [])


def _notified(state: WatchState, now: float, rules: WatchRules) -> WatchState:
    return replace(state, notified=state.notified + 1, window_until=now + rules.window)


def _is_spent(state: WatchState, rules: WatchRules) -> bool:
    return 0 < rules.budget <= state.notified


def _disable(state: WatchState, reason: Reason) -> tuple[WatchState, list[WatchOutcome]]:
    uncounted = state.held.count if state.held is not None else 0
    after = replace(state, window_until=None, held=None, disabled=True, notify_on=True)
    return after, [Disabled(state.strikes, uncounted, state.matches, reason)]
