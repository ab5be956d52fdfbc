"""Rows <-> queues and the starts that wait in them. All of it within the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from typing import Any, NamedTuple

from holdfast.model.process import ProcessId
from holdfast.model.queues import QueueSettings
from holdfast.records import Struct

Launch = dict[str, Any]


class QueuedStart(NamedTuple):
    seq: int
    process: ProcessId
    launch: Launch
    """What the keeper is to be given."""


class StoredQueues(Struct, frozen=True):
    settings: dict[str, QueueSettings]
    starts: list[QueuedStart]
    """In their order."""


def load(connection: sqlite3.Connection) -> StoredQueues:
    settings = {
        name: QueueSettings(slots, bool(paused))
        for name, slots, paused in connection.execute("SELECT name, slots, paused FROM queues")
    }
    rows = connection.execute("SELECT seq, process, launch FROM queued ORDER BY seq").fetchall()
    return StoredQueues(
        settings, [QueuedStart(seq, ProcessId(process), json.loads(text)) for seq, process, text in rows]
    )


def put_settings(connection: sqlite3.Connection, name: str, settings: QueueSettings) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO queues (name, slots, paused) VALUES (?, ?, ?)", (name, settings.limit, settings.paused)
    )


def drop_settings(connection: sqlite3.Connection, name: str) -> None:
    connection.execute("DELETE FROM queues WHERE name = ?", (name,))


def put_start(connection: sqlite3.Connection, start: QueuedStart) -> None:
    # json, because arguments and variables may hold bytes that are no UTF-8, as lone surrogates
    connection.execute(
        "INSERT INTO queued (seq, process, launch) VALUES (?, ?, ?)",
        (start.seq, start.process, json.dumps(start.launch)),
    )


def drop_start(connection: sqlite3.Connection, process_id: ProcessId) -> None:
    connection.execute("DELETE FROM queued WHERE process = ?", (process_id,))
