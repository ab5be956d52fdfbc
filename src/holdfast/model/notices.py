"""Notices: what the session that owns a process is told of it. Which change makes one, and what it says. No I/O."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from holdfast.model.ids import ProcessId
from holdfast.model.lifecycle import end_signal, exit_code, reason, stop_of
from holdfast.model.process import Process
from holdfast.model.prompts import Need
from holdfast.model.stalls import Stall

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
"""An approval is wanted of a person: it goes to sinks, and into no inbox."""


@dataclass(frozen=True, slots=True)
class Notice:
    """News for one session. The same news has the same key, whatever was restarted in between."""

    key: str
    kind: Kind
    process: ProcessId | None
    session: str
    at: float
    origin: dict[str, Any] | None = None
    data: dict[str, Any] = field(default_factory=dict)
    claim: str | None = None
    """Who is being given it as the answer to a question."""

    @property
    def id(self) -> str:
        return id_of(self.key)


def id_of(key: str) -> str:
    """The id of the notice with this key."""
    return f"note_{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def completion_key(process_id: ProcessId, run: int) -> str:
    return f"{process_id}:completion:{run}"


def of_process(process: Process, kind: Kind, key: str, at: float, data: dict[str, Any]) -> Notice:
    """A notice about a process, for the session that owns it."""
    meta = process.meta
    what = {**data, "command": meta.command, "name": meta.name}
    return Notice(f"{process.id}:{key}", kind, process.id, meta.session, at, meta.origin, what)


def completion(process: Process, now: float) -> Notice | None:
    """Its end, if `notify` includes it and the owner did not ask for it. The output is added when it is shown."""
    state, meta, notify = process.state, process.meta, process.notify
    stop = stop_of(state)
    if stop is not None and stop.by is not None and stop.by == meta.session:
        return None
    if stop is not None and stop.reason == "session_end":
        return None  # its owner is over, and whoever ended that has the answer
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


def stalled(process: Process, stall: Stall, now: float) -> Notice:
    """One for each episode."""
    data = {"since": stall.since, "last_output_at": stall.last_output_at, "wait": stall.wait}
    return of_process(process, "stalled", f"stalled:{int(stall.since * 1000)}", now, data)


def input_needed(process: Process, need: Need, now: float) -> Notice:
    """One for each question."""
    data = {"since": need.since, "prompt": need.prompt, "secret": need.secret}
    return of_process(process, "input_needed", f"input_needed:{process.run}:{need.at}", now, data)


def succeeded(process: Process) -> bool:
    """Whether it ended by itself with a code that counts as success."""
    return reason(process.state) == "exited" and exit_code(process.state) in process.meta.success_codes
