"""The store in use: durable when it says so, patient with a full disk, and never in the way of the loop."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from holdfast.errors import DiskFull, HoldfastError
from holdfast.model.events import Event
from holdfast.model.process import HeldProcess
from holdfast.records import replace
from holdfast.store.db import open_db
from holdfast.store.store import Store
from tests.model.made import ended, process
from tests.support import eventually


def in_store(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    try:
        return {row[0] for row in connection.execute("SELECT id FROM processes")}
    finally:
        connection.close()


def state_of(path: Path, process_id: str) -> str:
    connection = sqlite3.connect(path)
    try:
        (state,) = connection.execute("SELECT state FROM processes WHERE id = ?", (process_id,)).fetchone()
        return str(state)
    finally:
        connection.close()


class Case:
    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path / "store.db"
        self.connection, _ = open_db(str(self.path))
        self.troubles: list[str] = []

    def run(self, work: Callable[[Store], Awaitable[None]]) -> None:
        async def main() -> None:
            store = Store(self.connection, str(self.path), self.troubles.append)
            try:
                await work(store)
            finally:
                await store.close()

        asyncio.run(main())

    def fill(self) -> None:
        """From now on the disk is full."""
        (pages,) = self.connection.execute("PRAGMA page_count").fetchone()
        self.connection.execute(f"PRAGMA max_page_count = {pages}")

    def free(self) -> None:
        self.connection.execute("PRAGMA max_page_count = 1000000")


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def big(number: int) -> HeldProcess:
    """One that needs pages of its own."""
    return process(number, command="x" * 20_000)


def test_a_reader_waits_for_a_thread_that_is_late_and_not_for_a_disk_that_hangs(case: Case) -> None:
    async def work(store: Store) -> None:
        store._writer.run(lambda _: time.sleep(0.5))  # as on a machine that gives the thread no processor
        store.save_soon(process(1))
        await store.flush()
        assert in_store(case.path) == {process(1).id}
        goes_on = threading.Event()
        hanging = store.begin_change(lambda _: goes_on.wait(20))
        store.save_soon(process(2))
        await store.flush()
        assert store.hangs and not hanging.done()
        goes_on.set()
        await hanging

    case.run(work)


def test_saved_is_on_disk(case: Case) -> None:
    async def work(store: Store) -> None:
        await store.save(process(1))
        assert in_store(case.path) == {process(1).id}
        await store.remove(process(1).id)
        assert in_store(case.path) == set()

    case.run(work)


def test_what_is_saved_soon_is_on_disk_with_the_next_commit(case: Case) -> None:
    async def work(store: Store) -> None:
        store.save_soon(process(1))
        await store.save(process(2))
        assert in_store(case.path) == {process(1).id, process(2).id}

    case.run(work)


def test_what_is_saved_soon_is_on_disk_after_a_close(case: Case) -> None:
    async def work(store: Store) -> None:
        store.save_soon(process(1))

    case.run(work)
    assert in_store(case.path) == {process(1).id}


def test_the_newest_write_of_a_process_is_kept_by_any_way_of_saving(case: Case) -> None:
    async def work(store: Store) -> None:
        store.save_soon(process(1))
        first = store.begin_save(ended(1, 5.0))
        store.save_soon(replace(ended(1, 5.0), exit_offset=7))
        await first
        store.remove_soon([process(2).id])
        second = store.begin_save(process(2))
        await second

    case.run(work)
    assert in_store(case.path) == {process(1).id, process(2).id}
    assert '"ended"' in state_of(case.path, process(1).id)


def test_many_that_wait_share_a_commit(case: Case) -> None:
    commits: list[str] = []
    case.connection.set_trace_callback(lambda statement: commits.append(statement) if statement == "COMMIT" else None)

    async def work(store: Store) -> None:
        await asyncio.gather(*(store.save(process(number)) for number in range(200)))

    case.run(work)
    assert len(in_store(case.path)) == 200
    assert len(commits) < 100


def test_a_full_disk_is_reported_and_rows_are_saved_when_there_is_space(case: Case) -> None:
    case.fill()

    async def work(store: Store) -> None:
        with pytest.raises(DiskFull):
            await store.save(big(1), [happened("a")])
        assert in_store(case.path) == set()
        case.free()
        await store.save(big(2), [happened("b")])

    case.run(work)
    assert in_store(case.path) == {process(1).id, process(2).id}
    assert sorted(topics(case.path)) == ["a", "b"]


def test_events_are_committed_with_their_change(case: Case) -> None:
    told: list[tuple[int, str]] = []

    async def work(store: Store) -> None:
        store.on_events.append(lambda numbered: told.extend((one.seq, one.envelope["type"]) for one in numbered))
        store.save_soon(process(1), [happened("first")])
        store.save_soon(process(1), [happened("second")])
        assert told == []
        await store.save(process(1), [happened("third")])
        await store.record([happened("fourth")])
        assert told == [(1, "first"), (2, "second"), (3, "third"), (4, "fourth")]
        assert store.newest_event == 4
        assert [one.seq for one in await store.read_events(2, 10)] == [3, 4]
        assert [one.seq for one in await store.read_events(0, 2)] == [1, 2]

    case.run(work)
    assert topics(case.path) == ["first", "second", "third", "fourth"]


def test_numbers_of_forgotten_events_are_not_given_again(case: Case) -> None:
    async def work(store: Store) -> None:
        await store.record([happened(str(number)) for number in range(5)])
        store.forget_events(before=float("inf"), most=0)
        await store.record([happened("new")])
        assert [one.seq for one in await store.read_events(0, 10)] == [6]
        assert await store.oldest_event() == 6

    case.run(work)


def happened(topic: str) -> Event:
    return Event(topic, 5.0, {})


def topics(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute("SELECT envelope FROM events ORDER BY seq").fetchall()
        return [json.loads(row[0])["type"] for row in rows]
    finally:
        connection.close()


def test_rows_that_found_no_space_are_written_when_there_is_some(case: Case) -> None:
    case.fill()

    async def work(store: Store) -> None:
        store.save_soon(big(1))
        await asyncio.to_thread(eventually, lambda: case.troubles)
        case.free()
        await store.save(process(2))  # gives the others a lift

    case.run(work)
    assert in_store(case.path) == {process(1).id, process(2).id}


def test_a_row_that_cannot_be_written_does_not_hold_up_the_others(case: Case) -> None:
    async def work(store: Store) -> None:
        bad = store.begin_save(process(1, session="\ud800"))
        good = store.begin_save(process(2))
        await good
        with pytest.raises(HoldfastError):
            await bad

    case.run(work)
    assert in_store(case.path) == {process(2).id}


def test_a_closed_store_refuses(case: Case) -> None:
    async def main() -> None:
        store = Store(case.connection, str(case.path), case.troubles.append)
        await store.close()
        with pytest.raises(HoldfastError):
            await store.save(process(1))

    asyncio.run(main())
