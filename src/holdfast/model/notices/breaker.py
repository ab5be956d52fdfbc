"""The breaker across all processes: too many match notifications at once, and they are paused for a while. No I/O.

More than `limit` notifications of matches within `window` seconds trip it. From then on, for `silence` seconds, matches
are held back, the one that tripped it among them. When it is released they are notified, as one digest for each owner.
Ends of processes, and of watches, do not fall under it.

Details:
- The digests of a release do not count towards the next trip: counting starts at zero.
- The count of a release is that of all matches held back since the trip, also of those that the end of their process
  has notified by then (`take`).
- Matches are held back until `release` is called, even after the silence is over.
- When the clock is set back, the silence lasts for one whole silence from then at most.
- With the limit 0 it never trips.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from holdfast.model.notices import lenient
from holdfast.model.notices.matches import Held, WatchMatch, joined
from holdfast.records import Struct, asdict, field, replace

#: Characters kept of a line that is held back: there may be one for each process.
MOST_CHARACTERS = 400

#: Matches that are held back, by session and process.
Shelf: TypeAlias = dict[str, dict[str, Held]]


class BreakerRules(Struct, frozen=True):
    limit: int = 15
    window: float = 10.0
    silence: float = 30.0


class Breaker(Struct, frozen=True):
    """The state of the breaker of an instance. A new one is not tripped."""

    notified_at: tuple[float, ...] = ()
    """The times of the last notifications."""
    tripped_at: float | None = None
    """None while it is not tripped. Identifies this trip."""
    tripper: str | None = None
    """The session whose match tripped it."""
    origin: dict[str, Any] | None = None
    """The origin of the process whose match tripped it."""
    since: float = 0.0
    """When the silence began: with the trip, unless the clock was set back since."""
    silence: float = 0.0
    held: Shelf = field(default_factory=dict)
    suppressed: int = 0
    """Matches held back since the trip."""
    processes: int = 0
    """Of how many processes."""

    def to_json(self) -> dict[str, Any]:
        fields = {name: value for name, value in asdict(self).items() if value not in (None, 0, {}, ())}
        if "notified_at" in fields:
            fields["told_at"] = fields.pop("notified_at")
        if self.tripped_at is not None:
            fields["tripped_at"] = self.tripped_at
        if self.held:
            fields["held"] = {name: {one: held.to_json() for one, held in by.items()} for name, by in self.held.items()}
        return fields

    @classmethod
    def from_json(cls, value: object) -> Breaker:
        """Never fails: an invalid part becomes that of a new breaker. Matches that are held back are never lost."""
        fields = lenient.table(value)
        held = _shelf_from_json(fields.get("held"))
        tripped_at = lenient.moment(fields.get("tripped_at"))
        notified_at = (lenient.moment(at) for at in lenient.items(fields.get("told_at")))
        if tripped_at is None and not held:
            return cls(tuple(at for at in notified_at if at is not None))
        tripper = fields.get("tripper")
        return cls(
            tripped_at=tripped_at or 0.0,
            tripper=tripper if isinstance(tripper, str) else next(iter(held), None),
            origin=lenient.plain(fields.get("origin")),
            since=lenient.moment(fields.get("since")) or 0.0,
            silence=max(0.0, lenient.moment(fields.get("silence")) or 0.0),
            held=held,
            suppressed=max(_count(held), lenient.whole(fields.get("suppressed"))),
            processes=max(sum(map(len, held.values())), lenient.whole(fields.get("processes"))),
        )


class Released(Struct, frozen=True):
    """The end of a silence."""

    count: int
    """Matches held back in all."""
    processes: int
    sessions: Shelf
    """Matches still to be notified: one digest for each session."""
    tripper: str | None
    tripped_at: float
    origin: dict[str, Any] | None = None
    """The origin of the process whose match tripped it."""


def admit(
    breaker: Breaker,
    session: str,
    process: str,
    matches: Sequence[WatchMatch] | Held,
    now: float,
    rules: BreakerRules,
    origin: dict[str, Any] | None = None,
) -> tuple[Breaker, bool, bool]:
    """Whether a notification of these matches may be made now, and whether they tripped the breaker.

    Matches that are not admitted are held back for the session.
    """
    if not isinstance(matches, Held):
        if not matches:
            return breaker, True, False
        matches = Held.of(matches)
    if breaker.tripped_at is not None:
        return _hold(_by_clock(breaker, now), session, process, matches), False, False
    recent = tuple(at for at in breaker.notified_at if now - rules.window < at <= now)
    if len(recent) < rules.limit or not rules.limit:
        return Breaker((*recent, now) if rules.limit else ()), True, False
    tripped = Breaker(tripped_at=now, tripper=session, origin=origin, since=now, silence=rules.silence)
    return _hold(tripped, session, process, matches), False, True


def next_due(breaker: Breaker) -> float | None:
    """When the silence is over; None when there is none."""
    return None if breaker.tripped_at is None else breaker.since + breaker.silence


def release(breaker: Breaker, now: float) -> tuple[Breaker, Released | None]:
    """End the silence when its time is over; otherwise nothing changes."""
    if breaker.tripped_at is None:
        return breaker, None
    breaker = _by_clock(breaker, now)
    if now < breaker.since + breaker.silence or breaker.tripped_at is None:
        return breaker, None
    counts = (breaker.suppressed, breaker.processes, breaker.held)
    return Breaker(), Released(*counts, breaker.tripper, breaker.tripped_at, breaker.origin)


def take(breaker: Breaker, session: str, process: str) -> tuple[Breaker, Held | None]:
    """At the end of a process: its held matches are notified now, before the end, and not again later."""
    held = breaker.held.get(session, {}).get(process)
    return (breaker, None) if held is None else (_without(breaker, session, process), held)


def transfer(breaker: Breaker, process: str, to: str) -> Breaker:
    """After a process moved to another session: its matches are notified to that one."""
    for session in [name for name, by in breaker.held.items() if process in by and name != to]:
        held = breaker.held[session][process]
        breaker = _put(_without(breaker, session, process), to, process, held)
    return breaker


def rename(breaker: Breaker, old: str, new: str) -> Breaker:
    """After a session was renamed, possibly to the name of another session."""
    for process, held in breaker.held.get(old, {}).items() if old != new else ():
        breaker = _put(_without(breaker, old, process), new, process, held)
    return replace(breaker, tripper=new) if breaker.tripper == old else breaker


def _hold(breaker: Breaker, session: str, process: str, later: Held) -> Breaker:
    is_first = process not in breaker.held.get(session, {})
    counted = replace(
        breaker, suppressed=breaker.suppressed + later.count, processes=breaker.processes + is_first
    )  # fmt: skip
    return _put(counted, session, process, later.clipped(MOST_CHARACTERS))


def _put(breaker: Breaker, session: str, process: str, later: Held) -> Breaker:
    of_session = breaker.held.get(session, {})
    both = joined(of_session.get(process), later)
    return replace(breaker, held={**breaker.held, session: {**of_session, process: both}})


def _without(breaker: Breaker, session: str, process: str) -> Breaker:
    left = {one: held for one, held in breaker.held[session].items() if one != process}
    others = {name: by for name, by in breaker.held.items() if name != session}
    return replace(breaker, held={**others, session: left} if left else others)


def _by_clock(breaker: Breaker, now: float) -> Breaker:
    return replace(breaker, since=now) if now < breaker.since else breaker


def _count(held: Shelf) -> int:
    return sum(one.count for by in held.values() for one in by.values())


def _shelf_from_json(value: object) -> Shelf:
    shelf: Shelf = {}
    for session, by in lenient.table(value).items():
        read = {process: Held.from_json(one) for process, one in lenient.table(by).items()}
        if kept := {process: held for process, held in read.items() if held is not None}:
            shelf[session] = kept
    return shelf
