"""Rows <-> numbered events."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from holdfast import fast_json
from holdfast.model.events import BridgeOrigin, Event, StoredEvent
from holdfast.model.sinks import Sink
from holdfast.store import inbox, outbox
from holdfast_keeper import failpoints

#: Bridges whose place is remembered; the ones that were quiet for longest are forgotten first.
_MOST_BRIDGES = 10_000


def append(connection: sqlite3.Connection, events: Iterable[Event], sinks: Sequence[Sink] = ()) -> list[StoredEvent]:
    """Write them within the caller's transaction. Returns them with their sequence numbers.

    What came over a bridge and is here already is left out, and so are notices that were written before. A new notice
    is put on its way to those of the sinks that want it.
    """
    numbered = []
    for event in events:
        if event.origin is not None and not _is_new(connection, event.origin, event.at):
            continue
        if event.notice is not None and not inbox.put(connection, event.notice):
            continue
        if event.notice is not None:
            failpoints.reach("notice-writing")
        if event.notice is not None and sinks:
            outbox.append(connection, outbox.rows_for(event.notice, sinks, event.notice.at))
        envelope = event.envelope()
        row = (event.at, fast_json.dumps(envelope).decode())
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


def read(connection: sqlite3.Connection, after: int, limit: int) -> list[StoredEvent]:
    """The events that follow a number, oldest first."""
    rows = connection.execute("SELECT seq, envelope FROM events WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit))
    return [StoredEvent(seq, fast_json.loads(envelope)) for seq, envelope in rows]


def newest(connection: sqlite3.Connection) -> int:
    """The greatest number ever given; 0 when there was none."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
    return int(row[0]) if row is not None else 0


def oldest(connection: sqlite3.Connection) -> int:
    """The smallest number that is left; one more than the newest when none is."""
    (seq,) = connection.execute("SELECT min(seq) FROM events").fetchone()
    return int(seq) if seq is not None else newest(connection) + 1


def forget(connection: sqlite3.Connection, before: float, most: int) -> None:
    """Drop what happened before that time, and all but the newest `most`; and bridges that were quiet since then."""
    connection.execute(
        "DELETE FROM bridges WHERE at < ? OR id IN (SELECT id FROM bridges ORDER BY at DESC LIMIT -1 OFFSET ?)",
        (before, _MOST_BRIDGES),
    )
    connection.execute("DELETE FROM events WHERE at < ? OR seq <= ?", (before, newest(connection) - most))
