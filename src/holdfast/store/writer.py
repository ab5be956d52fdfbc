"""Writing to the store: transactions, and the one thread that makes them. All pending changes go into one commit."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count

from holdfast.errors import DiskFull, HoldfastError
from holdfast.model.events import Event, StoredEvent
from holdfast.model.notices.sinks import Sink
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.records import Struct, replace
from holdfast.store import rows
from holdfast_keeper import failpoints

#: Seconds between two attempts to write a change that failed.
_RETRY = 2.0
#: After this time without commits, the write-ahead log is checkpointed.
_IDLE = 5.0

_NEVER = float("inf")

Done = Callable[[HoldfastError | None], None]
Failures = dict[ProcessId, HoldfastError]
Edit = Callable[[sqlite3.Connection], object]


class RowChange(Struct, frozen=True):
    process_id: ProcessId
    process: HeldProcess | None
    """None: the row is deleted."""
    events: tuple[Event, ...] = ()
    """Its events: stored if and only if the change is."""
    edits: tuple[Edit, ...] = ()
    """Other edits in the same transaction."""


_numbers = count()


def no_process() -> ProcessId:
    """The key of a change that belongs to no process: each is written, and fails, on its own."""
    return ProcessId(f"#{next(_numbers)}")


class _Pending(Struct, frozen=True):
    change: RowChange
    again: bool
    """Tried again when it fails; otherwise the caller decides."""


class _Waiter(Struct, frozen=True):
    ids: list[ProcessId]
    done: Done


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction. SQLite rolls some failed transactions back itself, others must be rolled back here."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        failpoints.reach("store-commit")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def is_full(error: sqlite3.Error) -> bool:
    """Whether the disk is full, by any error code of SQLite."""
    name = getattr(error, "sqlite_errorname", "")
    return name in ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_FSYNC")


class Writer:
    """Of several changes to one process only the newest is written, with the events of all of them.

    Callbacks run in the writer's thread. `on_commit` is called once per commit: with the events that are on disk, in
    their order, and with the callers that wait for it, each with the reason where theirs failed.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        on_trouble: Callable[[str], None],
        on_commit: Callable[[list[StoredEvent], list[tuple[Done, HoldfastError | None]]], None],
    ) -> None:
        self._connection = connection
        self._on_trouble = on_trouble
        self._on_commit = on_commit
        self._numbered: list[StoredEvent] = []
        self._tasks: list[Edit] = []
        #: Receivers of notices beside the inbox.
        self.sinks: Sequence[Sink] = ()
        self._wake = threading.Condition()
        self._pending: dict[ProcessId, _Pending] = {}
        self._waiters: list[_Waiter] = []
        self._due = _NEVER
        self._closing = False
        #: When the commit that is under way began, by the monotonic clock; None when there is none.
        self.committing_since: float | None = None
        self._thread = threading.Thread(target=self._work, name="store", daemon=True)
        self._thread.start()

    def put_now(self, changes: list[RowChange], done: Done, again: bool = False, wake: bool = True) -> None:
        """`done` gets None once the changes are on disk, else the reason. With `again` it is retried.

        Without `wake` it is written with the next change, or at the next `flush`.
        """
        with self._wake:
            if self._closing:
                return done(HoldfastError("the daemon is stopping"))
            self._add(changes, again)
            self._waiters.append(_Waiter([change.process_id for change in changes], done))
            if wake:
                self._due = 0.0
                self._wake.notify()
            return None

    def put_later(self, changes: list[RowChange]) -> None:
        """Written with the next change that has a waiting caller, or at the next `flush`. Does not wake the thread."""
        with self._wake:
            self._add(changes, again=True)

    def run(self, task: Edit) -> None:
        """Run an edit soon, in a transaction of its own. A failure is reported, not retried."""
        with self._wake:
            self._tasks.append(task)
            self._due = 0.0
            self._wake.notify()

    def flush(self) -> None:
        with self._wake:
            self._due = 0.0
            self._wake.notify()

    def close(self) -> None:
        """Write the rest, once, and end the thread."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    def _add(self, changes: Iterable[RowChange], again: bool) -> None:
        for change in changes:
            before = self._pending.get(change.process_id)
            if before is not None:
                change = _joined(before.change, change)
            self._pending[change.process_id] = _Pending(change, again)

    def _work(self) -> None:
        uncheckpointed = False
        while not self._closing or self._pending or self._tasks:
            pending, waiters = self._next_batch(_IDLE if uncheckpointed else None)
            self._run_tasks()
            if pending or waiters:
                self._write(pending, waiters)
                uncheckpointed = True
            elif uncheckpointed:
                self._checkpoint()
                uncheckpointed = False
        self._connection.close()

    def _next_batch(self, idle_timeout: float | None) -> tuple[dict[ProcessId, _Pending], list[_Waiter]]:
        """The changes to commit together; none when there was none within `idle_timeout`."""
        with self._wake:
            while not self._closing and time.monotonic() < self._due:
                pause = idle_timeout if self._due == _NEVER else max(0.0, self._due - time.monotonic())
                if not self._wake.wait(pause) and self._due == _NEVER:
                    return {}, []
            pending, self._pending = self._pending, {}
            waiters, self._waiters = self._waiters, []
            self._due = _NEVER
            return pending, waiters

    def _write(self, pending: dict[ProcessId, _Pending], waiters: list[_Waiter]) -> None:
        self.committing_since = time.monotonic()
        failures = self._commit([one.change for one in pending.values()]) if pending else {}
        self.committing_since = None
        self._try_again_later({key: one for key, one in pending.items() if one.again and key in failures})
        outcomes = [
            (waiter.done, next((failures[key] for key in waiter.ids if key in failures), None)) for waiter in waiters
        ]
        numbered, self._numbered = self._numbered, []
        if numbered or outcomes:
            self._on_commit(numbered, outcomes)

    def _commit(self, changes: list[RowChange]) -> Failures:
        error = self._try(changes)
        if error is None:
            return {}
        if isinstance(error, DiskFull) or len(changes) == 1:
            return {change.process_id: error for change in changes}
        failures: Failures = {}
        for change in changes:  # one of them cannot be written: the others are committed alone
            failures |= self._commit([change])
        return failures

    def _run_tasks(self) -> None:
        with self._wake:
            tasks, self._tasks = self._tasks, []
        for task in tasks:
            try:
                with transaction(self._connection):
                    task(self._connection)
            except sqlite3.Error as failed:
                self._on_trouble(f"an edit of the store failed: {failed}")

    def _try(self, changes: list[RowChange]) -> HoldfastError | None:
        numbered: list[StoredEvent] = []
        try:
            with transaction(self._connection):
                for change in changes:
                    if not change.process_id.startswith("#"):
                        rows.put_process(self._connection, change.process_id, change.process)
                    for edit in change.edits:
                        edit(self._connection)
                    numbered += rows.append_events(self._connection, change.events, self.sinks)
        except (sqlite3.Error, ValueError, OverflowError) as failed:
            if isinstance(failed, sqlite3.Error) and is_full(failed):
                return DiskFull("the disk has no room to record it")
            return HoldfastError(f"the store cannot be written: {failed}")
        if any(one.notice is not None for one in numbered):
            failpoints.reach("notice-written")
        self._numbered += numbered
        return None

    def _try_again_later(self, failed: dict[ProcessId, _Pending]) -> None:
        if not failed:
            return
        with self._wake:
            if not self._closing:
                for process_id, newer in self._pending.items():
                    if (older := failed.get(process_id)) is not None:
                        newer = replace(newer, change=_joined(older.change, newer.change))
                    failed[process_id] = newer
                self._pending = failed
                self._due = min(self._due, time.monotonic() + _RETRY)
        self._on_trouble(f"{len(failed)} rows could not be written yet")

    def _checkpoint(self) -> None:
        try:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except sqlite3.Error:
            return  # the rows are in the write-ahead log; the next checkpoint copies them


def _joined(older: RowChange, newer: RowChange) -> RowChange:
    """The newer row, with the events and edits of both."""
    return replace(newer, events=older.events + newer.events, edits=older.edits + newer.edits)
