"""Rows <-> notices, names of sessions and small facts. All of it within the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from sqlite3 import Connection
from typing import Any, NamedTuple

from holdfast import fast_json
from holdfast.model.ids import ProcessId
from holdfast.model.notices import Notice

__all__ = ["Connection", "Kept"]

_COLUMNS = "key, kind, process, session, at, body, claim"


class Kept(NamedTuple):
    """What the inbox needs to go on."""

    pending: list[Notice]
    """In their order."""
    aliases: dict[str, str]
    memory: dict[str, Any]


def put(connection: sqlite3.Connection, notice: Notice) -> bool:
    """Whether it is new."""
    what = (notice.key, notice.kind, notice.process, notice.session, notice.at, _body(notice), notice.claim)
    row = (notice.id, *what)
    cursor = connection.execute(f"INSERT OR IGNORE INTO inbox (id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    return cursor.rowcount > 0


def load(connection: sqlite3.Connection) -> Kept:
    """What is pending; also what was being delivered as an answer when the daemon or a client died, still claimed."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM inbox WHERE acked_at IS NULL ORDER BY seq").fetchall()
    aliases = dict(connection.execute("SELECT name, now FROM aliases").fetchall())
    memory = {name: fast_json.loads(value) for name, value in connection.execute("SELECT name, value FROM memory")}
    return Kept([_read(row) for row in rows], aliases, memory)


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
    text = fast_json.dumps(value).decode()
    connection.execute("INSERT OR REPLACE INTO memory (name, value) VALUES (?, ?)", (name, text))


def forget(connection: sqlite3.Connection, acked_before: float, pending_before: float) -> None:
    """Drop what was acknowledged, or went unheard, before these times; and names that long ago were given up."""
    connection.execute("DELETE FROM inbox WHERE acked_at < ?", (acked_before,))
    connection.execute("DELETE FROM inbox WHERE acked_at IS NULL AND at < ?", (pending_before,))
    connection.execute("DELETE FROM aliases WHERE at < ?", (pending_before,))


def _body(notice: Notice) -> str:
    return fast_json.dumps({"origin": notice.origin, "data": notice.data}).decode()


def _read(row: tuple[Any, ...]) -> Notice:
    key, kind, process, session, at, body, claim_ = row
    said = fast_json.loads(body)
    process_id = ProcessId(process) if process is not None else None
    return Notice(key, kind, process_id, session, at, said.get("origin"), said.get("data") or {}, claim_)
