"""Rows <-> what is on its way to the outside."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.model.events import Notice
from holdfast.model.notices.sinks import FARTHEST, Outgoing, Settled, Sink, sinks_for
from holdfast.records import Struct, replace

_COLUMNS = "seq, sink, key, body, at, due_at, attempts, last_error, dead_at"
_MOST_DEAD = 10_000


class Tally(Struct, frozen=True):
    """What became of everything that a sink was to send."""

    pending: int = 0
    dead: int = 0
    next_at: float | None = None
    sent: int = 0
    failed: int = 0
    """Tries that failed."""
    last_sent_at: float | None = None
    last_error: str | None = None
    last_error_at: float | None = None


def rows_for(notice: Notice, sinks: Iterable[Sink], now: float) -> list[Outgoing]:
    """A row for each sink that wants the notice, due now; not numbered yet. Quiet hours are seen to when it is sent."""
    body = notice.to_json()
    return [Outgoing(0, sink.name, notice.key, body, notice.at, now) for sink in sinks_for(notice, sinks)]


def append(connection: sqlite3.Connection, rows: Iterable[Outgoing]) -> None:
    """Write them within the caller's transaction. What is there already stays as it is."""
    connection.executemany(
        "INSERT OR IGNORE INTO outbox (sink, key, body, at, due_at) VALUES (?, ?, ?, ?, ?)",
        [(row.sink, row.key, _dump(row.body), row.at, row.due_at) for row in rows],
    )


def withdraw(connection: sqlite3.Connection, key: str) -> None:
    """It need not be sent any more."""
    connection.execute("DELETE FROM outbox WHERE key = ? AND dead_at IS NULL", (key,))


def due(connection: sqlite3.Connection, sink: str, now: float, limit: int) -> list[Outgoing]:
    """What this sink is to send now, in the order in which it came up."""
    where = "sink = ? AND dead_at IS NULL AND (due_at <= ? OR due_at > ?) ORDER BY due_at, seq LIMIT ?"
    return _read(connection, where, (sink, now, now + FARTHEST, limit))


def next_due(connection: sqlite3.Connection, sink: str) -> float | None:
    (at,) = connection.execute("SELECT min(due_at) FROM outbox WHERE sink = ? AND dead_at IS NULL", (sink,)).fetchone()
    return at if at is None else float(at)


def settle(connection: sqlite3.Connection, settled: Settled) -> None:
    """Write down what came of a try, within the caller's transaction. A row that is gone meanwhile stays gone."""
    row, state, at = settled
    if state.due_at is None and state.dead_at is None:
        connection.execute("DELETE FROM outbox WHERE seq = ?", (row.seq,))
        _count(connection, row.sink, "sent = sent + 1, last_sent_at = ?", (at,))
        return
    connection.execute(
        "UPDATE outbox SET attempts = ?, last_error = ?, due_at = coalesce(?, due_at), dead_at = ? WHERE seq = ?",
        (state.attempts, state.error, state.due_at, state.dead_at, row.seq),
    )
    _count(connection, row.sink, "failed = failed + 1, last_error = ?, last_error_at = ?", (state.error, at))


def dead(connection: sqlite3.Connection, limit: int) -> list[Outgoing]:
    """What was given up, newest first."""
    return _read(connection, "dead_at IS NOT NULL ORDER BY dead_at DESC, seq DESC LIMIT ?", (limit,))


def retry(connection: sqlite3.Connection, seqs: Sequence[int] | None, now: float) -> list[int]:
    """Make these due now, as if never tried; None: everything that was given up. The ones that were there."""
    where, values = "dead_at IS NOT NULL", list[int]()
    if seqs is not None:
        where, values = f"seq IN ({','.join('?' * len(seqs))})", list(seqs)
    found = connection.execute(
        f"UPDATE outbox SET due_at = ?, attempts = 0, dead_at = NULL WHERE {where} RETURNING seq", (now, *values)
    )
    return sorted(seq for (seq,) in found.fetchall())


def tallies(connection: sqlite3.Connection) -> dict[str, Tally]:
    """By sink, also for those that are not configured any more."""
    found: dict[str, Tally] = {}
    for name, *rest in connection.execute(
        "SELECT name, sent, failed, last_sent_at, last_error, last_error_at FROM sinks"
    ):
        found[name] = Tally(0, 0, None, *rest)
    for name, pending, next_at, given_up in connection.execute(
        "SELECT sink, count(*) FILTER (WHERE dead_at IS NULL), min(due_at) FILTER (WHERE dead_at IS NULL),"
        " count(dead_at) FROM outbox GROUP BY sink"
    ):
        found[name] = replace(found.get(name, Tally()), pending=pending, dead=given_up, next_at=next_at)
    return found


def completions_of(connection: sqlite3.Connection, process: str) -> list[Outgoing]:
    """Ends of this process that are yet to be sent, or were given up."""
    return _read(connection, "key GLOB ?", (f"{process}:completion:*",))


def rewrite(connection: sqlite3.Connection, bodies: Iterable[tuple[int, dict[str, Any]]]) -> None:
    """What rows say, anew."""
    connection.executemany("UPDATE outbox SET body = ? WHERE seq = ?", [(_dump(body), seq) for seq, body in bodies])


def forget(connection: sqlite3.Connection, before: float) -> None:
    """Drop what was given up before that time, and all but the newest of it."""
    connection.execute(
        "DELETE FROM outbox WHERE dead_at < ? OR seq IN"
        " (SELECT seq FROM outbox WHERE dead_at IS NOT NULL ORDER BY dead_at DESC LIMIT -1 OFFSET ?)",
        (before, _MOST_DEAD),
    )


def _count(connection: sqlite3.Connection, sink: str, change: str, values: tuple[Any, ...]) -> None:
    connection.execute("INSERT OR IGNORE INTO sinks (name) VALUES (?)", (sink,))
    connection.execute(f"UPDATE sinks SET {change} WHERE name = ?", (*values, sink))


def _read(connection: sqlite3.Connection, where: str, values: tuple[Any, ...]) -> list[Outgoing]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM outbox WHERE {where}", values)
    return [Outgoing(row[0], row[1], row[2], json.loads(row[3]), *row[4:]) for row in rows]


def _dump(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
