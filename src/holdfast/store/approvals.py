"""Rows <-> approvals, and what is half typed. All of it within the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from sqlite3 import Connection

from holdfast.model.approvals import ApprovalRecord
from holdfast.records import names

__all__ = ["Connection"]

_NAMES = names(ApprovalRecord)
_COLUMNS = ", ".join(_NAMES)
_PLACES = ", ".join("?" * len(_NAMES))


def put(connection: sqlite3.Connection, approval: ApprovalRecord) -> None:
    """Insert or replace the record."""
    row = [getattr(approval, name) for name in _NAMES]
    connection.execute(f"INSERT OR REPLACE INTO approvals ({_COLUMNS}) VALUES ({_PLACES})", row)


def load(connection: sqlite3.Connection) -> list[ApprovalRecord]:
    """All of them, oldest first."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM approvals ORDER BY at, id").fetchall()
    found = [dict(zip(_NAMES, row, strict=True)) for row in rows]
    return [ApprovalRecord(**{**row, "asker": bool(row["asker"])}) for row in found]


def forget(connection: sqlite3.Connection, ids: Iterable[str]) -> None:
    connection.executemany("DELETE FROM approvals WHERE id = ?", [(id_,) for id_ in ids])


def rename(connection: sqlite3.Connection, old: str, new: str) -> None:
    connection.execute("UPDATE approvals SET session = ? WHERE session = ?", (new, old))


def load_typed(connection: sqlite3.Connection) -> dict[str, str]:
    return dict(connection.execute("SELECT process, text FROM typed").fetchall())


def put_typed(connection: sqlite3.Connection, process: str, text: str) -> None:
    """What was typed and has no end yet; nothing where it is empty."""
    if text:
        connection.execute("INSERT OR REPLACE INTO typed (process, text) VALUES (?, ?)", (process, text))
    else:
        connection.execute("DELETE FROM typed WHERE process = ?", (process,))
