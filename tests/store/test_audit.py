"""The chain of the audit log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.store import audit
from holdfast.store.audit import BEGINNING, Entry
from holdfast.store.db import open_db
from holdfast.store.writer import transaction


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Connection]:
    connection, _ = open_db(str(tmp_path / "store.db"))
    yield connection
    connection.close()


def write(store: Connection, count: int) -> None:
    for n in range(count):
        with transaction(store):
            audit.append(store, 1000.0 + n, {"what": "test", "text": "ü\udc80", "n": n})


def test_an_empty_log_is_whole(store: Connection) -> None:
    assert audit.verify(store) == audit.Verified(0, BEGINNING, None, None)


def test_entries_are_read_back_in_order(store: Connection) -> None:
    write(store, 5)
    assert [entry.seq for entry in audit.read(store, 2, 2)] == [3, 4]
    assert [entry.seq for entry in audit.last(store, 2)] == [4, 5]
    found = audit.verify(store)
    assert (found.entries, found.fault, found.head) == (5, None, audit.last(store, 1)[0].hash)


@given(st.integers(0, 5), st.sampled_from(["drop", "swap", "text", "prev", "hash"]), st.data())
def test_every_damage_is_found(at: int, harm: str, data: st.DataObject) -> None:
    entries = chain(6)
    assert audit.check(entries).fault is None
    if harm == "drop" and at == 5:
        return  # the end is told by the number that was given last: see verify
    if harm == "drop":
        del entries[at]
    elif harm == "swap":
        other = data.draw(st.integers(0, 5).filter(lambda other: other != at))
        entries[at], entries[other] = entries[other], entries[at]
    else:
        entries[at] = entries[at]._replace(**{harm: getattr(entries[at], harm) + "x"})
    found = audit.check(entries)
    assert found.fault is not None and found.seq is not None and found.seq <= at + 1


def chain(count: int) -> list[Entry]:
    import sqlite3

    store = sqlite3.connect(":memory:")
    store.execute(
        "CREATE TABLE audit (seq INTEGER PRIMARY KEY AUTOINCREMENT, at REAL, prev TEXT, hash TEXT, entry TEXT)"
    )
    write_all(store, count)
    found = audit.read(store, 0, count)
    store.close()
    return found


def write_all(store: Connection, count: int) -> None:
    for n in range(count):
        audit.append(store, float(n), {"what": "test", "n": n})
