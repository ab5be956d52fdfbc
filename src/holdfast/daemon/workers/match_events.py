"""Matches become events and notices, limited by the circuit breaker that all processes share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.model.events import Event, Notice, of_process, queued
from holdfast.model.notices import breaker, match_data
from holdfast.model.notices.breaker import Breaker, Released
from holdfast.model.notices.matches import Held, WatchMatch
from holdfast.model.notices.watching import Disabled, MatchDigest, Notified, WatchOutcome
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.settings import Settings

#: The key under which the breaker is persisted.
NAME = "breaker"


class MatchEvents:
    """Holds the breaker. The events it returns have to be persisted together with `remembered`."""

    def __init__(self, kept: object, settings: Settings, find: Callable[[ProcessId], HeldProcess | None]) -> None:
        self._breaker = Breaker.from_json(kept)
        self._rules = breaker.BreakerRules(settings.breaker_limit, settings.breaker_window, settings.breaker_silence)
        self._find = find

    @property
    def remembered(self) -> dict[str, Any]:
        return self._breaker.to_json()

    @property
    def next_due(self) -> float | None:
        """When the breaker closes again; None if it is not open."""
        return breaker.next_due(self._breaker)

    def of_outcomes(self, process: HeldProcess, outcomes: Sequence[WatchOutcome], now: float) -> list[Event]:
        events: list[Event] = []
        for outcome in outcomes:
            match outcome:
                case Notified(matches=matches):
                    events.append(_matched(process, matches[0], len(matches), now))
                    events += self._notice(process, match_data.match_data(outcome), matches, now)
                case MatchDigest(held=held):
                    events.append(_matched(process, held.first, held.count, now))
                    events += self._notice(process, match_data.digest_data(outcome), held, now)
                case Disabled():
                    events += _disabled(process, outcome, now)
        return events

    def at_end(self, process: HeldProcess, now: float) -> list[Event]:
        """The matches that the breaker holds back of a process that ends: they are published before its end."""
        self._breaker, held = breaker.take(self._breaker, process.meta.session, process.id)
        return [] if held is None else queued(_match_notice(process, match_data.held_data(held), now, "held"))

    def release(self, now: float) -> list[Event]:
        """The events of the moment when the breaker closes again; none before."""
        self._breaker, released = breaker.release(self._breaker, now)
        if released is None:
            return []
        data = match_data.release_data(released)
        events = [Event("watch.overflow_released", now, data)]
        if released.tripper is not None:
            key = f"{_overflow(released.tripped_at)}:released"
            overflow = Notice(key, "watch_overflow_released", None, released.tripper, now, released.origin, data)
            events += queued(overflow)
        for session, processes in released.sessions.items():
            events += queued(self._for_owner(released, session, processes, now))
        return events

    def renamed(self, old: str, new: str) -> None:
        self._breaker = breaker.rename(self._breaker, old, new)

    def transferred(self, process_id: ProcessId, to: str) -> None:
        self._breaker = breaker.transfer(self._breaker, process_id, to)

    def _notice(
        self, process: HeldProcess, data: dict[str, Any], matches: Sequence[WatchMatch] | Held, now: float
    ) -> list[Event]:
        session, origin = process.meta.session, process.meta.origin
        self._breaker, admitted, tripped = breaker.admit(
            self._breaker, session, process.id, matches, now, self._rules, origin
        )
        if admitted:
            return queued(_match_notice(process, data, now, "match"))
        return self._tripped(session, origin, now) if tripped else []

    def _tripped(self, session: str, origin: dict[str, Any] | None, now: float) -> list[Event]:
        data = match_data.trip_data(self._rules)
        notice = Notice(f"{_overflow(now)}:tripped", "watch_overflow_tripped", None, session, now, origin, data)
        return [Event("watch.overflow_tripped", now, {**data, "session": session}), *queued(notice)]

    def _for_owner(self, released: Released, session: str, processes: Mapping[str, Held], now: float) -> Notice:
        data = match_data.owner_data(processes)
        known = [self._find(ProcessId(one)) for one in processes]
        only = known[0] if len(known) == 1 else None
        who = {"command": only.meta.command, "name": only.meta.name} if only is not None else {}
        origins = [process.meta.origin if process is not None else None for process in known]
        origin = origins[0] if all(one == origins[0] for one in origins) else None
        key = f"{_overflow(released.tripped_at)}:{session}"
        process_id = only.id if only is not None else None
        return Notice(key, "watch_match", process_id, session, now, origin, {**data, **who})


def _match_notice(process: HeldProcess, data: dict[str, Any], now: float, kind: str) -> Notice:
    return of_process(process, "watch_match", f"{kind}:{data['stream']}:{data['offset']}", now, data)


def _matched(process: HeldProcess, match: WatchMatch, count: int, now: float) -> Event:
    meta = process.meta
    who = {"id": meta.id, "name": meta.name, "session": meta.session, "task": meta.task}
    place = {"stream": match.stream, "offset": match.offset, "pattern": match.pattern, "output": match.output}
    return Event("process.match", now, {**who, **place, "count": count})


def _disabled(process: HeldProcess, disabled: Disabled, now: float) -> list[Event]:
    meta = process.meta
    data = {**match_data.disabled_data(disabled, (*meta.watch, *meta.watch_regex)), "notify": process.notify}
    who = {"id": meta.id, "name": meta.name, "session": meta.session, "task": meta.task}
    details = {"strikes": disabled.strikes, "suppressed": disabled.suppressed, "reason": disabled.reason}
    key = f"watch_disabled:{disabled.matches}"
    notice = of_process(process, "watch_disabled", key, now, data)
    return [Event("watch.disabled", now, {**who, **details}), *queued(notice)]


def _overflow(tripped_at: float) -> str:
    return f"overflow:{int(tripped_at * 1000)}"
