"""Rows <-> processes."""

from __future__ import annotations

import sqlite3
from typing import Any

from holdfast import fast_json
from holdfast.model import lifecycle
from holdfast.model.ids import ProcessId
from holdfast.model.lifecycle import Ended, Outcome, State, StopRequest, Waiting
from holdfast.model.process import HeldProcess, Leftover, Meta, StreamExtent
from holdfast.model.progress import Progress
from holdfast.model.prompts import InputNeed
from holdfast.model.readiness import Readiness
from holdfast.model.stalls import Stall
from holdfast.model.watching import WatchState
from holdfast.store.approvals import put_typed

Row = tuple[str, str, str, str, str]

_PUT = "INSERT OR REPLACE INTO processes (id, session, meta, state, marks) VALUES (?, ?, ?, ?, ?)"

_STATES: dict[str, type[State]] = {
    "requested": lifecycle.Requested,
    "running": lifecycle.Running,
    "stopping": lifecycle.Stopping,
    "ended": lifecycle.Ended,
    "waiting": lifecycle.Waiting,
}
_OUTCOMES: dict[str, type[Outcome]] = {
    "exited": lifecycle.Exited,
    "signaled": lifecycle.Signaled,
    "unseen": lifecycle.Unseen,
    "lost": lifecycle.Lost,
    "never_ran": lifecycle.NeverRan,
}
_STATE_NAMES = {kind: name for name, kind in _STATES.items()}
_OUTCOME_NAMES = {kind: name for name, kind in _OUTCOMES.items()}


def apply(connection: sqlite3.Connection, process_id: ProcessId, process: HeldProcess | None) -> None:
    """Write its row over the one before; None takes it away, and what was typed into it."""
    if process is None:
        connection.execute("DELETE FROM processes WHERE id = ?", (process_id,))
        put_typed(connection, process_id, "")
    else:
        connection.execute(_PUT, to_row(process))


def load(connection: sqlite3.Connection) -> list[HeldProcess]:
    """All processes. A row that makes no sense counts as missing: its bundle has the same."""
    rows = connection.execute("SELECT id, session, meta, state, marks FROM processes").fetchall()
    return [process for process in map(_read, rows) if process is not None]


def to_row(process: HeldProcess) -> Row:
    meta = process.meta
    return (meta.id, meta.session, _dump(meta.to_json()), _dump(_state_to_json(process.state)), _dump(_marks(process)))


def from_row(row: Row) -> HeldProcess:
    meta = Meta.from_json({**fast_json.loads(row[2]), "session": row[1]})
    marks = fast_json.loads(row[4])
    return HeldProcess(
        meta,
        _state_from_json(fast_json.loads(row[3])),
        streams={name: StreamExtent(*extent) for name, extent in marks.get("streams", {}).items()},
        exit_offset=marks.get("exit_offset"),
        leftovers=tuple(Leftover(*leftover) for leftover in marks.get("leftovers", ())),
        cols=marks.get("cols", meta.cols),
        rows=marks.get("rows", meta.rows),
        deadline_notified=marks.get("deadline_told", False),
        run=marks.get("run", 0),
        streak=marks.get("streak", 0),
        gave_up=marks.get("gave_up", False),
        boot_run=marks.get("boot_run"),
        readiness=Readiness(**marks["readiness"]) if marks.get("readiness") else None,
        stall=Stall(**marks["stall"]) if marks.get("stall") else None,
        need=InputNeed(**marks["need"]) if marks.get("need") else None,
        watching=WatchState.from_json(marks["watching"]) if marks.get("watching") else None,
        progress=Progress.from_json(marks["progress"]) if marks.get("progress") else None,
        cpu_seconds=marks.get("cpu_seconds"),
        peak_rss=marks.get("peak_rss"),
    )


def _read(row: Row) -> HeldProcess | None:
    try:
        return from_row(row)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _marks(process: HeldProcess) -> dict[str, Any]:
    return {
        "streams": {name: (stream.first, stream.end, stream.closed) for name, stream in process.streams.items()},
        "exit_offset": process.exit_offset,
        "leftovers": [(leftover.pid, leftover.start) for leftover in process.leftovers],
        "cols": process.cols,
        "rows": process.rows,
        "deadline_told": process.deadline_notified,
        "run": process.run,
        "streak": process.streak,
        "gave_up": process.gave_up,
        "boot_run": process.boot_run,
        "readiness": _fields(process.readiness) if process.readiness is not None else None,
        "stall": _fields(process.stall) if process.stall is not None else None,
        "need": _fields(process.need) if process.need is not None else None,
        "watching": process.watching.to_json() if process.watching is not None else None,
        "progress": process.progress.to_json() if process.progress is not None else None,
        "cpu_seconds": process.cpu_seconds,
        "peak_rss": process.peak_rss,
    }


def _state_to_json(state: State) -> dict[str, Any]:
    fields = {"is": _STATE_NAMES[type(state)], **_fields(state)}
    if isinstance(state, Waiting):
        fields["last"] = _state_to_json(state.last)
    if isinstance(state, Ended):
        fields["outcome"] = {"is": _OUTCOME_NAMES[type(state.outcome)], **_fields(state.outcome)}
    if fields.get("stop") is not None:
        fields["stop"] = _fields(fields["stop"])
    return fields


def _fields(record: State | Outcome | StopRequest | Readiness | Stall | InputNeed) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__slots__}


def _state_from_json(value: dict[str, Any]) -> State:
    fields = dict(value)
    kind = _STATES[fields.pop("is")]
    if "last" in fields:
        fields["last"] = _state_from_json(fields["last"])
    if "outcome" in fields:
        outcome = dict(fields["outcome"])
        fields["outcome"] = _OUTCOMES[outcome.pop("is")](**outcome)
    if fields.get("stop") is not None:
        fields["stop"] = StopRequest(**fields["stop"])
    return kind(**fields)


def _dump(value: dict[str, Any]) -> str:
    return fast_json.dumps(value).decode()
