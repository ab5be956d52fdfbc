"""Notices: notifications for the session that owns a process, which change makes one, and their data. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from holdfast.model import breaker
from holdfast.model.ids import ProcessId
from holdfast.model.lifecycle import end_signal, exit_code, reason, stop_of
from holdfast.model.matches import Held, in_a_row, joined
from holdfast.model.process import HeldProcess
from holdfast.model.prompts import InputNeed
from holdfast.model.stalls import Stall
from holdfast.model.watching import Disabled, MatchDigest, Notified

Kind: TypeAlias = Literal[
    "completion",
    "watch_match",
    "watch_disabled",
    "watch_overflow_tripped",
    "watch_overflow_released",
    "progress",
    "ready",
    "stalled",
    "deadline",
    "input_needed",
    "approval",
]
"""`approval` asks an approver: it goes to sinks, and into no inbox."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification for one session. The same fact has the same key, also after any restart."""

    key: str
    kind: Kind
    process: ProcessId | None
    session: str
    at: float
    origin: dict[str, Any] | None = None
    data: dict[str, Any] = field(default_factory=dict)
    claim: str | None = None
    """The call that is about to return it as its answer."""

    @property
    def id(self) -> str:
        return id_of(self.key)

    def to_json(self) -> dict[str, Any]:
        """The fields of the notification object that are stored."""
        names = ("id", "key", "kind", "process", "session", "origin", "at", "data")
        return {name: getattr(self, name) for name in names}


@lru_cache(1024)
def id_of(key: str) -> str:
    """The id of the notice with this key."""
    return f"note_{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def completion_key(process_id: ProcessId, run: int) -> str:
    return f"{process_id}:completion:{run}"


def ready_key(process_id: ProcessId, run: int) -> str:
    return f"{process_id}:ready:{run}"


def of_process(process: HeldProcess, kind: Kind, key: str, at: float, data: dict[str, Any]) -> Notice:
    """A notice about a process, for the session that owns it."""
    meta = process.meta
    data = {**data, "command": meta.command, "name": meta.name}
    return Notice(f"{process.id}:{key}", kind, process.id, meta.session, at, meta.origin, data)


def completion(process: HeldProcess, now: float) -> Notice | None:
    """The notice of its end, if `notify` includes it and the owner did not request it. Output is added on delivery."""
    state, meta, notify = process.state, process.meta, process.notify
    stop = stop_of(state)
    if stop is not None and stop.by is not None and stop.by == meta.session:
        return None
    if stop is not None and stop.reason == "session_end":
        return None  # its owner has ended, and the caller that ended it has the answer
    code = exit_code(state)
    if notify == "never" or (notify != "any" and (notify == "success") != succeeded(process)):
        return None
    data = {
        "exit_code": code,
        "signal": end_signal(state),
        "reason": reason(state),
        "output_bytes": sum(stream.end for stream in process.streams.values()),
        "started_at": process.started_at,
        "ended_at": process.ended_at,
        "run": process.run,
        "killed_by": stop.by if stop is not None else None,
        "gave_up": process.gave_up,
        "leftover_pids": [leftover.pid for leftover in process.leftovers],
        "succeeded": succeeded(process),
        "suppressed": 0,
    }
    return of_process(process, "completion", f"completion:{process.run}", process.ended_at or now, data)


def stalled(process: HeldProcess, stall: Stall, now: float) -> Notice:
    """One for each episode."""
    data = {"since": stall.since, "last_output_at": stall.last_output_at, "wait": stall.wait}
    return of_process(process, "stalled", f"stalled:{int(stall.since * 1000)}", now, data)


def input_needed(process: HeldProcess, need: InputNeed, now: float) -> Notice:
    """One for each question."""
    data = {"since": need.since, "prompt": need.prompt, "secret": need.secret}
    return of_process(process, "input_needed", f"input_needed:{process.run}:{need.at}", now, data)


def succeeded(process: HeldProcess) -> bool:
    """Whether it ended by itself with a code that counts as success."""
    return reason(process.state) == "exited" and exit_code(process.state) in process.meta.success_codes


#: The digest of a release shows lines of this many processes, and only counts of the others.
MOST_SHOWN = 100


def match_data(notified: Notified) -> dict[str, Any]:
    """`output` is what the log has at `offset`; lines apart from it are in `more`, each with its own offset."""
    row = notified.matches[: in_a_row(notified.matches)]
    first = row[0]
    return {
        "pattern": first.pattern,
        "output": "\n".join(match.output for match in row),
        "output_cut": any(match.is_cut for match in row),
        "stream": first.stream,
        "offset": first.offset,
        "end": row[-1].end,
        "count": len(notified.matches),
        "suppressed": notified.suppressed,
        "digest": False,
        "more": [match.to_json() for match in notified.matches[len(row) :]],
    }


def digest_data(digest: MatchDigest) -> dict[str, Any]:
    return held_data(digest.held)


def held_data(held: Held) -> dict[str, Any]:
    """Also for matches that the end of a process takes out of the breaker."""
    first = held.first.to_json()
    return {**first, "count": held.count, "suppressed": held.count, "digest": True, **_first_and_newest(held)}


def disabled_data(disabled: Disabled, patterns: Sequence[str]) -> dict[str, Any]:
    return {
        "strikes": disabled.strikes,
        "suppressed": disabled.suppressed,
        "matches": disabled.matches,
        "reason": disabled.reason,
        "patterns": list(patterns),
    }


def trip_data(rules: breaker.BreakerRules) -> dict[str, Any]:
    return {"limit": rules.limit, "window": rules.window, "silence": rules.silence}


def release_data(released: breaker.Released) -> dict[str, Any]:
    return {"suppressed": released.count, "processes": released.processes, "tripped_at": released.tripped_at}


def owner_data(processes: Mapping[str, Held]) -> dict[str, Any]:
    """The digest of one owner after a release: of all its processes together, and of each."""
    together: Held | None = None
    for held in processes.values():
        together = joined(together, held)
    rows = [
        {"process": process, "count": held.count, **(_first_and_newest(held) if number < MOST_SHOWN else _NO_LINES)}
        for number, (process, held) in enumerate(processes.items())
    ]
    return {**(held_data(together) if together is not None else {}), "processes": rows}


_NO_LINES: dict[str, Any] = {"first": None, "newest": None}


def _first_and_newest(held: Held) -> dict[str, Any]:
    return {"first": held.first.to_json(), "newest": held.newest.to_json()}
