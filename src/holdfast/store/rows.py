"""Rows <-> processes, events, notices, names of sessions and small facts. All of it within the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Any

from holdfast import light_json
from holdfast.model import lifecycle
from holdfast.model.events import BridgeOrigin, Event, Notice, StoredEvent
from holdfast.model.lifecycle import Ended, Outcome, Restarting, State, StopRequest, reason
from holdfast.model.notices.progress import Progress
from holdfast.model.notices.sinks import Sink
from holdfast.model.notices.watching import WatchState
from holdfast.model.probes.prompts import InputNeed
from holdfast.model.probes.readiness import Readiness
from holdfast.model.probes.stalls import Stall
from holdfast.model.process import HeldProcess, LastInput, Leftover, Meta, ProcessId, StreamExtent
from holdfast.records import Struct, asdict
from holdfast.store import outbox
from holdfast.store.approvals import put_typed
from holdfast_keeper import failpoints

__all__ = ["Connection", "Kept"]

Row = tuple[str, str, str, str, str]

_PUT_PROCESS = "INSERT OR REPLACE INTO processes (id, session, meta, state, marks) VALUES (?, ?, ?, ?, ?)"

_STATES: dict[str, type[State]] = {
    "requested": lifecycle.Requested,
    "queued": lifecycle.Queued,
    "running": lifecycle.Running,
    "stopping": lifecycle.Stopping,
    "ended": lifecycle.Ended,
    "waiting": lifecycle.Restarting,
}
_OUTCOMES: dict[str, type[Outcome]] = {
    "exited": lifecycle.Exited,
    "signaled": lifecycle.Signaled,
    "unseen": lifecycle.Unseen,
    "lost": lifecycle.Lost,
    "never_ran": lifecycle.NeverRan,
    "skipped": lifecycle.Skipped,
}
_STATE_NAMES = {kind: name for name, kind in _STATES.items()}
_OUTCOME_NAMES = {kind: name for name, kind in _OUTCOMES.items()}


def put_process(connection: sqlite3.Connection, process_id: ProcessId, process: HeldProcess | None) -> None:
    """Write its row over the one before; None takes it away, and what was typed into it."""
    if process is None:
        connection.execute("DELETE FROM processes WHERE id = ?", (process_id,))
        put_typed(connection, process_id, "")
    else:
        connection.execute(_PUT_PROCESS, to_row(process))


def load_processes(connection: sqlite3.Connection) -> list[HeldProcess]:
    """All processes. A row that makes no sense counts as missing: its bundle has the same."""
    rows = connection.execute("SELECT id, session, meta, state, marks FROM processes").fetchall()
    return [process for process in map(_read_process, rows) if process is not None]


def to_row(process: HeldProcess) -> Row:
    meta = process.meta
    return (meta.id, meta.session, _dump(meta.to_json()), _dump(_state_to_json(process.state)), _dump(_marks(process)))


def from_row(row: Row) -> HeldProcess:
    meta = Meta.from_json({**light_json.load_bytes(row[2]), "session": row[1]})
    marks = light_json.load_bytes(row[4])
    return HeldProcess(
        meta,
        _state_from_json(light_json.load_bytes(row[3])),
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
        trouble=marks.get("trouble"),
        cpu_seconds=marks.get("cpu_seconds"),
        peak_rss=marks.get("peak_rss"),
        typed=LastInput(**marks["typed"]) if marks.get("typed") else None,
    )


def _read_process(row: Row) -> HeldProcess | None:
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
        "readiness": asdict(process.readiness) if process.readiness is not None else None,
        "stall": asdict(process.stall) if process.stall is not None else None,
        "need": asdict(process.need) if process.need is not None else None,
        "watching": process.watching.to_json() if process.watching is not None else None,
        "progress": process.progress.to_json() if process.progress is not None else None,
        # Why it was not started, or was lost, is known from nowhere else.
        "trouble": process.trouble if process.pid is None or reason(process.state) == "lost" else None,
        "cpu_seconds": process.cpu_seconds,
        "peak_rss": process.peak_rss,
        "typed": asdict(process.typed) if process.typed is not None else None,
    }


def _state_to_json(state: State) -> dict[str, Any]:
    fields = {"is": _STATE_NAMES[type(state)], **asdict(state)}
    if isinstance(state, Restarting):
        fields["last"] = _state_to_json(state.last)
    if isinstance(state, Ended):
        fields["outcome"] = {"is": _OUTCOME_NAMES[type(state.outcome)], **asdict(state.outcome)}
    if fields.get("stop") is not None:
        fields["stop"] = asdict(fields["stop"])
    return fields


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
    return light_json.dump_bytes(value).decode()


# Events.

#: Bridges whose place is remembered; the ones that were quiet for longest are forgotten first.
_MOST_BRIDGES = 10_000


def append_events(
    connection: sqlite3.Connection, events: Iterable[Event], sinks: Sequence[Sink] = ()
) -> list[StoredEvent]:
    """Write them within the caller's transaction. Returns them with their sequence numbers.

    What came over a bridge and is here already is left out, and so are notices that were written before. A new notice
    is put on its way to those of the sinks that want it.
    """
    numbered = []
    for event in events:
        if event.origin is not None and not _is_new(connection, event.origin, event.at):
            continue
        if event.notice is not None and not put_notice(connection, event.notice):
            continue
        if event.notice is not None:
            failpoints.reach("notice-writing")
        if event.notice is not None and sinks:
            outbox.append(connection, outbox.rows_for(event.notice, sinks, event.notice.at))
        envelope = event.envelope()
        row = (event.at, light_json.dump_bytes(envelope).decode())
        cursor = connection.execute("INSERT INTO events (at, envelope) VALUES (?, ?)", row)
        numbered.append(StoredEvent(int(cursor.lastrowid or 0), envelope, event.notice))
        if event.receipt is not None:
            event.receipt.seq = numbered[-1].seq
    return numbered


def _is_new(connection: sqlite3.Connection, origin: BridgeOrigin, at: float) -> bool:
    """Whether this bridge has not brought it before; from now on it has."""
    cursor = connection.execute(
        "INSERT INTO bridges (id, n, at) VALUES (?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET n = excluded.n, at = excluded.at WHERE excluded.n > n",
        (origin.bridge, origin.n, at),
    )
    return cursor.rowcount > 0


def read_events(connection: sqlite3.Connection, after: int, limit: int) -> list[StoredEvent]:
    """The events that follow a number, oldest first."""
    rows = connection.execute("SELECT seq, envelope FROM events WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit))
    return [StoredEvent(seq, light_json.load_bytes(envelope)) for seq, envelope in rows]


def events_of(
    connection: sqlite3.Connection, text: str, since: float, before: int | None, limit: int
) -> list[StoredEvent]:
    """The newest events with this text in them, oldest first: from that time on, and before that number."""
    found = connection.execute(
        "SELECT seq, envelope FROM events WHERE at >= ? AND seq < ? AND instr(envelope, ?) ORDER BY seq DESC LIMIT ?",
        (since, before if before is not None else (1 << 63) - 1, text, limit),
    )
    return [StoredEvent(seq, light_json.load_bytes(envelope)) for seq, envelope in reversed(found.fetchall())]


def newest_event(connection: sqlite3.Connection) -> int:
    """The greatest number ever given; 0 when there was none."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
    return int(row[0]) if row is not None else 0


def oldest_event(connection: sqlite3.Connection) -> int:
    """The smallest number that is left; one more than the newest when none is."""
    (seq,) = connection.execute("SELECT min(seq) FROM events").fetchone()
    return int(seq) if seq is not None else newest_event(connection) + 1


def forget_events(connection: sqlite3.Connection, before: float, most: int) -> None:
    """Drop what happened before that time, and all but the newest `most`; and bridges that were quiet since then."""
    connection.execute(
        "DELETE FROM bridges WHERE at < ? OR id IN (SELECT id FROM bridges ORDER BY at DESC LIMIT -1 OFFSET ?)",
        (before, _MOST_BRIDGES),
    )
    connection.execute("DELETE FROM events WHERE at < ? OR seq <= ?", (before, newest_event(connection) - most))


# Notices, names of sessions and small facts.

_NOTICE_COLUMNS = "key, kind, process, session, at, body, claim"


class Kept(Struct, frozen=True):
    """What the inbox needs to go on."""

    pending: list[Notice]
    """In their order."""
    aliases: dict[str, str]
    memory: dict[str, Any]


def put_notice(connection: sqlite3.Connection, notice: Notice) -> bool:
    """Whether it is new."""
    what = (notice.key, notice.kind, notice.process, notice.session, notice.at, _body(notice), notice.claim)
    row = (notice.id, *what)
    query = f"INSERT OR IGNORE INTO inbox (id, {_NOTICE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    cursor = connection.execute(query, row)
    return cursor.rowcount > 0


def load_inbox(connection: sqlite3.Connection) -> Kept:
    """What is pending; also what was being delivered as an answer when the daemon or a client died, still claimed."""
    query = f"SELECT {_NOTICE_COLUMNS} FROM inbox WHERE acked_at IS NULL ORDER BY seq"
    rows = connection.execute(query).fetchall()
    aliases = dict(connection.execute("SELECT name, now FROM aliases").fetchall())
    memory = {
        name: light_json.load_bytes(value) for name, value in connection.execute("SELECT name, value FROM memory")
    }
    return Kept([_read_notice(row) for row in rows], aliases, memory)


def ack(connection: sqlite3.Connection, ids: Iterable[str], by: str, at: float) -> None:
    connection.executemany(
        "UPDATE inbox SET acked_at = ?, acked_by = ? WHERE id = ? AND acked_at IS NULL", [(at, by, id_) for id_ in ids]
    )


def claim(connection: sqlite3.Connection, ids: Iterable[str], by: str | None) -> None:
    """Record who claims them; None: no one any more."""
    connection.executemany("UPDATE inbox SET claim = ? WHERE id = ?", [(by, id_) for id_ in ids])


def acked(connection: sqlite3.Connection, ids: Iterable[str], session: str | None) -> set[str]:
    """Those of the ids that are acknowledged and remembered, of that session where one is named."""
    query = "SELECT id FROM inbox WHERE id = ? AND session = coalesce(?, session) AND acked_at IS NOT NULL"
    return {id_ for id_ in ids if connection.execute(query, (id_, session)).fetchone() is not None}


def address(connection: sqlite3.Connection, ids: Iterable[str], to: str) -> None:
    """They are this session's now."""
    connection.executemany("UPDATE inbox SET session = ? WHERE id = ?", [(to, id_) for id_ in ids])


def reword(connection: sqlite3.Connection, notices: Iterable[Notice]) -> None:
    """Write what they say anew."""
    connection.executemany("UPDATE inbox SET body = ? WHERE id = ?", [(_body(one), one.id) for one in notices])


def rename(connection: sqlite3.Connection, old: str, new: str, at: float) -> None:
    """From now on the old name means the new one, also in old notices."""
    connection.execute("UPDATE inbox SET session = ? WHERE session = ?", (new, old))
    connection.execute("UPDATE aliases SET now = ? WHERE now = ?", (new, old))
    connection.execute("DELETE FROM aliases WHERE name = ?", (new,))
    connection.execute("INSERT OR REPLACE INTO aliases (name, now, at) VALUES (?, ?, ?)", (old, new, at))


def remember(connection: sqlite3.Connection, name: str, value: Any) -> None:
    text = light_json.dump_bytes(value).decode()
    connection.execute("INSERT OR REPLACE INTO memory (name, value) VALUES (?, ?)", (name, text))


def forget_notices(connection: sqlite3.Connection, acked_before: float, pending_before: float) -> None:
    """Drop what was acknowledged, or went unheard, before these times; and names that long ago were given up."""
    connection.execute("DELETE FROM inbox WHERE acked_at < ?", (acked_before,))
    connection.execute("DELETE FROM inbox WHERE acked_at IS NULL AND at < ?", (pending_before,))
    connection.execute("DELETE FROM aliases WHERE at < ?", (pending_before,))


def _body(notice: Notice) -> str:
    return light_json.dump_bytes({"origin": notice.origin, "data": notice.data}).decode()


def _read_notice(row: tuple[Any, ...]) -> Notice:
    key, kind, process, session, at, body, claim_ = row
    said = light_json.load_bytes(body)
    process_id = ProcessId(process) if process is not None else None
    return Notice(key, kind, process_id, session, at, said.get("origin"), said.get("data") or {}, claim_)
