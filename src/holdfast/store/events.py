"""Rows <-> numbered events."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

from holdfast.model.happenings import Event, Numbered


def append(connection: sqlite3.Connection, events: Iterable[Event]) -> list[Numbered]:
    """Write them within the caller's transaction; each with the number that it got."""
    numbered = []
    for event in events:
        envelope = event.envelope()
        row = (event.at, json.dumps(envelope, separators=(",", ":"), allow_nan=False))
        cursor = connection.execute("INSERT INTO events (at, envelope) VALUES (?, ?)", row)
        numbered.append(Numbered(int(cursor.lastrowid or 0), envelope))
    return numbered


def read(connection: sqlite3.Connection, after: int, limit: int) -> list[Numbered]:
    """The events that follow a number, oldest first."""
    rows = connection.execute("SELECT seq, envelope FROM events WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit))
    return [Numbered(seq, json.loads(envelope)) for seq, envelope in rows]


def newest(connection: sqlite3.Connection) -> int:
    """The greatest number ever given; 0 when there was none."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
    return int(row[0]) if row is not None else 0


def oldest(connection: sqlite3.Connection) -> int:
    """The smallest number that is left; one more than the newest when none is."""
    (seq,) = connection.execute("SELECT min(seq) FROM events").fetchone()
    return int(seq) if seq is not None else newest(connection) + 1


def forget(connection: sqlite3.Connection, before: float, most: int) -> None:
    """Drop what happened before that time, and all but the newest `most`."""
    connection.execute("DELETE FROM events WHERE at < ? OR seq <= ?", (before, newest(connection) - most))
