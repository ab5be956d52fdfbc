"""Opening the store: new, old, newer, broken."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from holdfast.store.db import StoreTooNew, migrations, open_db
from holdfast.store.writer import transaction

ROW = ("proc_000000000001", "s", "{}", "{}", "{}")
INSERT = "INSERT INTO processes VALUES (?, ?, ?, ?, ?)"


def test_a_new_store_has_the_newest_version_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    connection, aside = open_db(str(path))
    assert aside is None
    assert connection.execute("PRAGMA user_version").fetchone() == (migrations()[-1][0],)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    connection.close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_migrations_are_numbered_without_gaps() -> None:
    assert [number for number, _ in migrations()] == list(range(1, len(migrations()) + 1))


@pytest.mark.parametrize("content", [b"not a database, but long enough to be read as one" * 100, b"x", b"\0" * 8192])
def test_a_broken_store_is_set_aside_and_never_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(content)
    connection, aside = open_db(str(path))
    assert aside is not None
    assert Path(aside).name.startswith("store.db.corrupt-")
    assert Path(aside).read_bytes() == content
    assert connection.execute("SELECT count(*) FROM processes").fetchone() == (0,)
    connection.close()


def test_a_store_that_broke_in_the_middle_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    connection, _ = open_db(str(path))
    with transaction(connection):
        for number in range(2000):
            connection.execute(INSERT, (f"proc_{number:012x}", *ROW[1:]))
    connection.close()
    content = bytearray(path.read_bytes())
    content[4096:40960] = b"\xa5" * (40960 - 4096)
    path.write_bytes(content)
    connection, aside = open_db(str(path))
    connection.close()
    assert aside is not None
    assert Path(aside).read_bytes() == content


def test_two_broken_stores_in_one_second_are_both_kept(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    kept = []
    for content in (b"first" * 1000, b"second" * 1000):
        for companion in tmp_path.glob("store.db-*"):
            companion.unlink()
        path.write_bytes(content)
        connection, aside = open_db(str(path))
        connection.close()
        kept.append(aside)
    assert len(set(kept)) == 2
    assert [Path(str(aside)).read_bytes()[:5] for aside in kept] == [b"first", b"secon"]


def test_a_store_of_a_newer_release_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    newer = sqlite3.connect(path)
    newer.execute("CREATE TABLE other (x)")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    before = path.read_bytes()
    with pytest.raises(StoreTooNew, match="version 99"):
        open_db(str(path))
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["store.db"]


def test_a_transaction_is_all_or_nothing(tmp_path: Path) -> None:
    connection, _ = open_db(str(tmp_path / "store.db"))
    with transaction(connection):
        connection.execute(INSERT, ROW)
    with pytest.raises(sqlite3.IntegrityError), transaction(connection):
        connection.executemany(INSERT, [("proc_000000000002", *ROW[1:]), ROW])
    assert connection.execute("SELECT count(*) FROM processes").fetchone() == (1,)
    connection.close()
