"""The store as the daemon uses it. Nothing here blocks the event loop: a thread writes, calls await its commit."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from holdfast.errors import HoldfastError
from holdfast.model.events import Event, StoredEvent
from holdfast.model.notices.sinks import Sink
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.records import Struct
from holdfast.store import db, outbox, rows
from holdfast.store.rows import Kept
from holdfast.store.writer import Done, Edit, RowChange, Writer, no_process

T = TypeVar("T")

#: How long a change without a waiting caller may stay in memory, to share the commit of one that has such.
_LINGER = 0.25
#: Seconds after which a commit that is under way counts as one that hangs.
_HANGS_AFTER = 0.1
#: How long a reader waits for what is to be written a moment later, and how often it looks whether the disk hangs.
_FLUSH_BUDGET, _FLUSH_PAUSE = 2.0, 0.05


class Opened(Struct, frozen=True):
    store: Store
    found: list[HeldProcess]
    """What was in it."""
    kept: Kept
    """Pending notices, names of sessions and small facts."""
    set_aside: str | None
    """Where a broken store was moved to before a new one was made."""


async def open_store(path: str, on_trouble: Callable[[str], None]) -> Opened:
    """Raises StoreTooNew, and sqlite3.Error or OSError when the file cannot be used at all."""
    connection, found, kept, set_aside = await asyncio.to_thread(_open, path)
    return Opened(Store(connection, path, on_trouble), found, kept, set_aside)


def _open(path: str) -> tuple[sqlite3.Connection, list[HeldProcess], Kept, str | None]:
    connection, set_aside = db.open_db(path)
    return connection, rows.load_processes(connection), rows.load_inbox(connection), set_aside


class Store:
    """Open for the life of the daemon. `on_trouble` is called, in the loop, for rows that could not be written yet."""

    def __init__(self, connection: sqlite3.Connection, path: str, on_trouble: Callable[[str], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_trouble = on_trouble
        #: Called in the loop with events that are on disk now, in their order.
        self.on_events: list[Callable[[list[StoredEvent]], None]] = []
        self.newest_event = rows.newest_event(connection)
        self._path = path
        self._writer = Writer(connection, self._trouble, lambda *written: self._call(self._committed, *written))
        self._flush: asyncio.TimerHandle | None = None

    @property
    def hangs(self) -> bool:
        """Whether a commit takes so long that the disk seems to hang."""
        since = self._writer.committing_since
        return since is not None and time.monotonic() - since > _HANGS_AFTER

    async def save(self, process: HeldProcess, happened: Sequence[Event] = ()) -> None:
        """On disk, with what it means to followers, when it returns. Raises DiskFull when it can only be done later."""
        await self.begin_save(process, happened)

    def begin_save(self, process: HeldProcess, happened: Sequence[Event] = ()) -> asyncio.Future[None]:
        """As save, for a caller who has something else to do meanwhile."""
        return self._commit([RowChange(process.id, process, tuple(happened))], again=True)

    async def record(self, happened: Sequence[Event]) -> None:
        """Events that are no process's, on disk when it returns. Raises DiskFull when it can only be done later."""
        await self.begin_record(happened)

    def begin_record(self, happened: Sequence[Event]) -> asyncio.Future[None]:
        """As record, for a caller who has more to record meanwhile: what was begun first is written first."""
        return self._commit([RowChange(no_process(), None, tuple(happened))], again=True)

    async def change(
        self,
        edit: Edit,
        happened: Sequence[Event] = (),
        processes: Sequence[HeldProcess] = (),
        within: float | None = None,
    ) -> None:
        """Have something done to the store, with the rows of these processes; it is when this returns.

        `within`: it may wait that long for a commit to share. Raises DiskFull when it can only be done later.
        """
        await self.begin_change(edit, happened, processes, within)

    def begin_change(
        self,
        edit: Edit,
        happened: Sequence[Event] = (),
        processes: Sequence[HeldProcess] = (),
        within: float | None = None,
    ) -> asyncio.Future[None]:
        """As change, for a caller who has something else to do meanwhile."""
        changes = [RowChange(process.id, process) for process in processes]
        return self._commit(
            [*changes, RowChange(no_process(), None, tuple(happened), (edit,))], again=True, within=within
        )

    def record_soon(self, happened: Sequence[Event]) -> None:
        self._put_later([RowChange(no_process(), None, tuple(happened))])

    def change_soon(self, edit: Edit, happened: Sequence[Event] = ()) -> None:
        """As change, with the next commit or a moment later."""
        self._put_later([RowChange(no_process(), None, tuple(happened), (edit,))])

    async def remove(self, process_id: ProcessId, happened: Sequence[Event] = ()) -> None:
        """Gone from disk when it returns. Raises DiskFull."""
        await self._commit([RowChange(process_id, None, tuple(happened))], again=False)

    def save_soon(self, process: HeldProcess, happened: Sequence[Event] = (), within: float = _LINGER) -> None:
        """On disk with the next commit or a moment later, and tried again for as long as the disk is full."""
        self._put_later([RowChange(process.id, process, tuple(happened))], within)

    async def flush(self) -> None:
        """What was to be written a moment later is on disk when this returns, unless the disk is full or hangs.

        A machine that is busy hangs no disk: the thread that writes may have to wait for its turn.
        """
        written = self._commit([], again=False)
        written.add_done_callback(lambda done: done.cancelled() or done.exception())
        until = self._loop.time() + _FLUSH_BUDGET
        while not self.hangs and not written.done() and self._loop.time() < until:
            await asyncio.wait({written}, timeout=_FLUSH_PAUSE)

    def remove_soon(self, ids: Iterable[ProcessId]) -> None:
        """As save_soon."""
        self._put_later([RowChange(process_id, None) for process_id in ids])

    async def read_events(self, after: int, limit: int) -> list[StoredEvent]:
        """Events that follow a number, oldest first."""
        return await asyncio.to_thread(_read_events, self._path, after, limit)

    async def events_of(self, text: str, since: float, before: int | None, limit: int) -> list[StoredEvent]:
        """The newest events with this text in them, oldest first: from that time on, and before that number."""
        return await asyncio.to_thread(_events_of, self._path, text, since, before, limit)

    @property
    def sinks(self) -> Sequence[Sink]:
        """Where notices go beside the inbox: rows for them are written in the transaction of the notice."""
        return self._writer.sinks

    @sinks.setter
    def sinks(self, sinks: Sequence[Sink]) -> None:
        self._writer.sinks = sinks

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What is found in the store as it is on disk now. Raises sqlite3.Error."""
        return await asyncio.to_thread(_read, self._path, work)

    def forget_outgoing(self, before: float) -> None:
        """Drop what was given up before that time, soon."""
        self._writer.run(lambda connection: outbox.forget(connection, before))

    async def oldest_event(self) -> int:
        """The number from which on nothing is missing."""
        return await asyncio.to_thread(_oldest_event, self._path)

    async def acked_notices(self, ids: Sequence[str], session: str | None) -> set[str]:
        """Those of the ids whose acknowledgement is on disk, of that session where one is named. Raises DiskFull."""
        found: set[str] = set()
        await self.change(lambda connection: found.update(rows.acked(connection, ids, session)))
        return found

    def forget_notices(self, acked_before: float, pending_before: float) -> None:
        """Drop old notices, soon."""
        self._writer.run(lambda connection: rows.forget_notices(connection, acked_before, pending_before))

    def forget_events(self, before: float, most: int) -> None:
        """Drop old events, soon."""
        self._writer.run(lambda connection: rows.forget_events(connection, before, most))

    async def close(self) -> None:
        """Writes what is left, once, and closes the file."""
        if self._flush is not None:
            self._flush.cancel()
        await asyncio.to_thread(self._writer.close)

    def _put_later(self, changes: list[RowChange], within: float = _LINGER) -> None:
        self._writer.put_later(changes)
        self._flush_within(within)

    def _flush_within(self, seconds: float) -> None:
        if not seconds:
            self._writer.flush()
            return
        due = self._loop.time() + seconds
        if self._flush is not None and self._flush.when() > due:
            self._flush.cancel()
            self._flush = None
        if self._flush is None:
            self._flush = self._loop.call_at(due, self._flush_now)

    def _flush_now(self) -> None:
        self._flush = None
        self._writer.flush()

    def _commit(self, changes: list[RowChange], again: bool, within: float | None = None) -> asyncio.Future[None]:
        done: asyncio.Future[None] = self._loop.create_future()
        self._writer.put_now(changes, partial(_resolve, done), again, wake=within is None)
        if within is not None:
            self._flush_within(within)
        return done

    def _committed(self, numbered: list[StoredEvent], outcomes: list[tuple[Done, HoldfastError | None]]) -> None:
        """Events are published before the callers that wait for the commit go on."""
        if numbered:
            self.newest_event = numbered[-1].seq
            for listener in self.on_events:
                listener(numbered)
        for done, error in outcomes:
            done(error)

    def _trouble(self, message: str) -> None:
        self._call(self._on_trouble, message)

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            return  # the loop is closed: there is no one to call


@contextmanager
def _reading(path: str) -> Iterator[sqlite3.Connection]:
    """A connection of one's own: readers and the writer do not wait for each other."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def _read(path: str, work: Callable[[sqlite3.Connection], T]) -> T:
    with _reading(path) as connection:
        return work(connection)


def _read_events(path: str, after: int, limit: int) -> list[StoredEvent]:
    with _reading(path) as connection:
        return rows.read_events(connection, after, limit)


def _events_of(path: str, text: str, since: float, before: int | None, limit: int) -> list[StoredEvent]:
    with _reading(path) as connection:
        return rows.events_of(connection, text, since, before, limit)


def _oldest_event(path: str) -> int:
    with _reading(path) as connection:
        return rows.oldest_event(connection)


def _resolve(done: asyncio.Future[None], error: HoldfastError | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
