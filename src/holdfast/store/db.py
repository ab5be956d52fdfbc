"""Opens the store: sets a broken file aside, refuses one of a newer release, brings an older one up to date."""

from __future__ import annotations

import os
import sqlite3
import time

from holdfast.errors import HoldfastError
from holdfast.store.writer import is_full, transaction

#: Pages of 4 KiB that the log may grow to before it is folded into the file, which the writer does when it is idle.
_WAL_PAGES = 1000
_SMALLEST = 512


class StoreTooNew(HoldfastError):
    """The store was written by a newer release; it was not touched."""

    code = "store_too_new"
    next = "use the newer release, or set HOLDFAST_HOME to another directory"


def open_db(path: str) -> tuple[sqlite3.Connection, str | None]:
    """A connection to an up-to-date store, and where a broken one was set aside (None mostly).

    Raises StoreTooNew before anything is written. The connection is for one thread, which need not be this one.
    """
    aside = None
    try:
        _check(path)
    except sqlite3.DatabaseError as broken:
        if is_full(broken) or isinstance(broken, sqlite3.OperationalError):
            raise
        aside = _set_aside(path)
    connection = _connect(path)
    migrate(connection)
    return connection, aside


def migrate(connection: sqlite3.Connection, upto: int | None = None) -> None:
    """Run the migrations that this store has not seen, each in a transaction of its own."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for number, script in migrations():
        if version < number and (upto is None or number <= upto):
            with transaction(connection):
                for statement in _statements(script):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")


def migrations() -> list[tuple[int, str]]:
    """The scripts in order, each with the version of the store it makes."""
    directory, found = os.path.join(os.path.dirname(__file__), "migrations"), []
    for name in sorted(os.listdir(directory)):
        if name.endswith(".sql"):
            with open(os.path.join(directory, name), encoding="utf-8") as script:
                found.append((int(name[:4]), script.read()))
    return found


def _check(path: str) -> None:
    """Raises StoreTooNew or sqlite3.DatabaseError; reads only, so that a store that is not ours stays as it is."""
    if not os.path.exists(path) or not (size := os.path.getsize(path)):
        return
    if size < _SMALLEST:
        raise sqlite3.DatabaseError("too short for a database; SQLite would take it for an empty one")
    connection = sqlite3.connect(f"file:{_quoted(path)}?mode=ro", uri=True, isolation_level=None)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        newest = migrations()[-1][0]
        if version > newest:
            raise StoreTooNew(f"{path} has version {version}, this release knows up to {newest}")
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
    finally:
        connection.close()


def _connect(path: str) -> sqlite3.Connection:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
    return connection


def _set_aside(path: str) -> str:
    """Rename a broken store with its companions; its content may still be of use."""
    aside = f"{path}.corrupt-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    while os.path.exists(aside):
        aside += "x"
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.rename(path + suffix, aside + suffix)
    return aside


def _statements(script: str) -> list[str]:
    """The statements one by one: executescript would commit in between."""
    found: list[str] = []
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            found.append(statement)
            statement = ""
    return found


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(path)
