"""What a change of a process means to those who follow events. No I/O."""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.model.lifecycle import end_signal, exit_code, reason, stop_of
from holdfast.model.process import Process


class Event(NamedTuple):
    """Something that happened, before it has a number."""

    topic: str
    at: float
    fields: dict[str, Any]

    def envelope(self) -> dict[str, Any]:
        return {"type": self.topic, "ts": self.at, "src": self.topic.partition(".")[0], **self.fields}


class Numbered(NamedTuple):
    """An event as it is kept. What comes later has a greater number."""

    seq: int
    envelope: dict[str, Any]


def of_change(before: Process | None, after: Process, now: float) -> list[Event]:
    """The events of one change, in order. The same change of a process that is known by now has none."""
    events: list[Event] = []
    was_begun = before is not None and before.started_at is not None
    if after.started_at is not None and not was_begun:
        events.append(_started(after))
    if after.has_ended and not (before is not None and before.has_ended):
        events.append(_ended(after, now))
    return events


def _started(process: Process) -> Event:
    meta = process.meta
    fields = {"command": meta.command, "cwd": meta.cwd, "pid": process.pid, "pty": meta.pty, "lifetime": meta.lifetime}
    return Event("process.started", process.started_at or meta.requested_at, {**_who(process), **fields})


def _ended(process: Process, now: float) -> Event:
    state = process.state
    stop = stop_of(state)
    fields = {
        "reason": reason(state),
        "exit_code": exit_code(state),
        "signal": end_signal(state),
        "started_at": process.started_at,
        "killed_by": stop.by if stop is not None else None,
        "forced": stop.forced if stop is not None else None,
        "output_bytes": sum(stream.end for stream in process.streams.values()),
        "leftover_pids": [leftover.pid for leftover in process.leftovers],
    }
    return Event("process.ended", process.ended_at or now, {**_who(process), **fields})


def _who(process: Process) -> dict[str, Any]:
    meta = process.meta
    return {"id": meta.id, "name": meta.name, "session": meta.session, "task": meta.task}
