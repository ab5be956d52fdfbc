"""The audit log: each entry holds the hash of the one before it, so that a changed or removed entry is detected."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable
from typing import Any, NamedTuple

from holdfast.records import Struct, replace

#: The entry with which a new store begins after a damaged one was set aside.
SET_ASIDE = "store.set-aside"
#: What the first entry follows.
BEGINNING = "0" * 64


class Entry(NamedTuple):
    seq: int
    at: float
    prev: str
    hash: str
    text: str
    """The entry as it was written: an object in JSON."""


class Verified(Struct, frozen=True):
    entries: int
    """How many were looked at."""
    head: str
    """The hash of the last one."""
    fault: str | None
    """The first thing that is wrong; None when nothing is."""
    seq: int | None
    """Where."""


def append(connection: sqlite3.Connection, at: float, entry: dict[str, Any]) -> None:
    """Write one within the caller's transaction."""
    row = connection.execute("SELECT hash FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
    prev = str(row[0]) if row is not None else BEGINNING
    text = json.dumps({"at": at, **entry}, sort_keys=True, separators=(",", ":"))
    connection.execute(
        "INSERT INTO audit (at, prev, hash, entry) VALUES (?, ?, ?, ?)", (at, prev, _hash(prev, text), text)
    )


def read(connection: sqlite3.Connection, after: int, limit: int) -> list[Entry]:
    """Those that follow a number, oldest first."""
    rows = connection.execute(
        "SELECT seq, at, prev, hash, entry FROM audit WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)
    )
    return [Entry(*row) for row in rows]


def last(connection: sqlite3.Connection, count: int) -> list[Entry]:
    """The newest ones, oldest first."""
    rows = connection.execute("SELECT seq, at, prev, hash, entry FROM audit ORDER BY seq DESC LIMIT ?", (count,))
    return [Entry(*row) for row in rows][::-1]


def verify(connection: sqlite3.Connection) -> Verified:
    """Go through all of it. Numbers are given without gaps, and the greatest one ever given is remembered apart."""
    rows = connection.execute("SELECT seq, at, prev, hash, entry FROM audit ORDER BY seq")
    found = check(map(Entry._make, rows))
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'audit'").fetchone()
    given = int(row[0]) if row is not None else found.entries
    if found.fault is None and given > found.entries:
        missing = found.entries + 1
        return replace(found, fault=f"entry {missing} and what follows it are missing", seq=missing)
    if found.fault is not None:
        return found
    lost = connection.execute(
        "SELECT seq, json_extract(entry, '$.to') FROM audit WHERE json_extract(entry, '$.what') = ?", (SET_ASIDE,)
    ).fetchone()
    return found if lost is None else replace(found, fault=set_aside_fault(lost[1]), seq=lost[0])


def set_aside_fault(path: object) -> str:
    """What is wrong after a damaged store was set aside: this log began anew then."""
    return f"the log before it is lost: the store was damaged and set aside as {path}"


def check(entries: Iterable[Entry]) -> Verified:
    """The chain alone. It ends at the first fault."""
    count, head = 0, BEGINNING
    for entry in entries:
        fault = _fault(entry, count + 1, head)
        if fault is not None:
            return Verified(count, head, fault, min(entry.seq, count + 1))
        count, head = entry.seq, entry.hash
    return Verified(count, head, None, None)


def _fault(entry: Entry, expected: int, head: str) -> str | None:
    if entry.seq != expected:
        return f"entry {expected} is missing"
    if entry.hash != _hash(entry.prev, entry.text) or _at(entry.text) != entry.at:
        return f"entry {entry.seq} was changed"
    return None if entry.prev == head else f"entry {entry.seq} does not follow entry {expected - 1}"


def _hash(prev: str, text: str) -> str:
    return hashlib.sha256((prev + text).encode()).hexdigest()


def _at(text: str) -> object:
    try:
        return json.loads(text).get("at")
    except (ValueError, AttributeError):
        return None
