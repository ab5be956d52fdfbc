"""Rows on their way to the outside."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.events import Notice, queued
from holdfast.model.notices.sinks import FARTHEST, DeliveryState, Outgoing, Settled, Sink
from holdfast.model.process import ProcessId
from holdfast.records import replace
from holdfast.store import outbox
from holdfast.store.db import open_db
from holdfast.store.rows import append_events
from holdfast.store.writer import transaction


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection, _ = open_db(str(tmp_path / "store.db"))
    yield connection
    connection.close()


SINKS = (Sink("a", "webhook"), Sink("b", "desktop", sessions=("other",)))


def notice(key: str, **data: Any) -> Notice:
    return Notice(f"proc_00000000000a:{key}", "completion", ProcessId("proc_00000000000a"), "s", 50.0, None, data)


def put(db: sqlite3.Connection, *keys: str, sinks: tuple[Sink, ...] = SINKS) -> None:
    with transaction(db):
        append_events(db, [event for key in keys for event in queued(notice(key))], sinks)


def due(db: sqlite3.Connection, sink: str = "a", now: float = 100.0) -> list[Outgoing]:
    return outbox.due(db, sink, now, 10)


def test_a_row_comes_with_the_notice_once_for_each_sink_that_wants_it(db: sqlite3.Connection) -> None:
    put(db, "completion:0", "completion:1")
    put(db, "completion:0")
    assert [row.key for row in due(db)] == ["proc_00000000000a:completion:0", "proc_00000000000a:completion:1"]
    assert due(db, "b") == []
    assert due(db)[0].body["id"] == notice("completion:0").id


def test_neither_is_there_when_the_change_is_not(db: sqlite3.Connection) -> None:
    db.execute("BEGIN")
    append_events(db, queued(notice("completion:0")), SINKS)
    assert len(due(db)) == 1
    db.execute("ROLLBACK")
    assert due(db) == []
    put(db, "completion:0")
    assert len(due(db)) == 1


def test_what_is_sent_is_gone_and_counted(db: sqlite3.Connection) -> None:
    put(db, "x")
    (row,) = due(db)
    outbox.settle(db, Settled(row, DeliveryState(1), 100.0))
    assert due(db) == []
    assert outbox.tallies(db)["a"] == outbox.Tally(sent=1, last_sent_at=100.0)


def test_what_failed_comes_again_when_it_is_due(db: sqlite3.Connection) -> None:
    put(db, "x")
    outbox.settle(db, Settled(due(db)[0], DeliveryState(1, "no", due_at=105.0), 100.0))
    assert due(db, now=104.0) == [] and outbox.next_due(db, "a") == 105.0
    (row,) = due(db, now=105.0)
    assert (row.attempts, row.last_error) == (1, "no")
    assert due(db, now=105.0 - FARTHEST - 1) == [row], "the clock was set back"


def test_dead_messages_wait_for_a_retry_by_the_user(db: sqlite3.Connection) -> None:
    put(db, "x", "y")
    for row in due(db):
        outbox.settle(db, Settled(row, DeliveryState(3, "no", dead_at=100.0), 100.0))
    assert due(db, now=1e9) == [] and outbox.next_due(db, "a") is None
    first, second = sorted(row.seq for row in outbox.dead(db, 10))
    assert outbox.retry(db, [first, 99], 200.0) == [first]
    assert [(row.seq, row.attempts, row.dead_at) for row in due(db, now=200.0)] == [(first, 0, None)]
    assert outbox.retry(db, None, 200.0) == [second]
    assert replace(outbox.tallies(db)["a"], next_at=None) == outbox.Tally(
        pending=2, failed=2, last_error="no", last_error_at=100.0
    )


def test_the_dead_are_forgotten_in_time(db: sqlite3.Connection) -> None:
    put(db, "x", "y")
    row, other = due(db)
    outbox.settle(db, Settled(row, DeliveryState(1, "no", dead_at=100.0), 100.0))
    outbox.forget(db, before=100.0)
    assert len(outbox.dead(db, 10)) == 1
    outbox.forget(db, before=100.5)
    assert outbox.dead(db, 10) == [] and due(db) == [other]


def test_output_is_added_before_the_log_goes(db: sqlite3.Connection) -> None:
    put(db, "completion:0", "ready:0")
    (row,) = outbox.completions_of(db, "proc_00000000000a")
    outbox.rewrite(db, [(row.seq, {**row.body, "data": {"output": "words"}})])
    assert [row.body["data"] for row in due(db)] == [{"output": "words"}, {}]
