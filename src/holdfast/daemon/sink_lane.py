"""One sink at work: what is due is sent, one after the other, and what came of it is written down."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.daemon.logbook import note
from holdfast.daemon.sink_link import SinkLink
from holdfast.errors import HoldfastError
from holdfast.model import sinks
from holdfast.model.events import Event
from holdfast.model.sinks import DeliveryState, Outgoing, SendResult, Settled, Sink
from holdfast.sinks.job import Job
from holdfast.store import outbox
from holdfast.store.store import Store

_AT_ONCE = 50
#: The wall clock may be set while we sleep: never for longer than this.
_LONGEST_SLEEP = 30.0
_TROUBLE_PAUSE = 2.0

#: The job that a row means for a sink, or why there cannot be one.
MakeJob = Callable[[Sink, Outgoing], Awaitable[Job | SendResult]]


class Lane:
    """`slots` bounds how many sinks send at the same time."""

    def __init__(self, sink: Sink, store: Store, link: SinkLink, slots: asyncio.Semaphore, make_job: MakeJob) -> None:
        self.sink = sink
        self.link = link
        self._store = store
        self._slots = slots
        self._make_job = make_job
        self._woken = asyncio.Event()
        self._is_closing = False
        #: Rows whose result is not on disk yet, as the disk has them: not to be sent again meanwhile.
        self._unwritten: set[tuple[int, int]] = set()

    def wake(self, sink: Sink | None = None) -> None:
        """There may be something to send, or the sink is another now."""
        self.sink = sink or self.sink
        self._woken.set()

    def finish(self) -> None:
        """Let `run` end when what is under way is done."""
        self._is_closing = True
        self._woken.set()

    async def run(self) -> None:
        """Until it is told to finish."""
        try:
            while not self._is_closing:
                self._woken.clear()
                try:
                    pause = await self._round()
                except sqlite3.Error as failed:
                    note("outbox-unreadable", sink=self.sink.name, why=failed)
                    pause = _TROUBLE_PAUSE
                await self._rest(pause)
        finally:
            self.link.close()

    async def _round(self) -> float:
        """Send what is due; how long there is nothing more to do."""
        now = time.time()
        if not self.sink.enabled:
            return _LONGEST_SLEEP
        if (quiet_until := sinks.not_before(self.sink, now)) > now:
            return quiet_until - now
        rows = await self._store.read(lambda db: outbox.due(db, self.sink.name, now, _AT_ONCE))
        fresh = [row for row in rows if (row.seq, row.attempts) not in self._unwritten]
        for row in fresh:
            if self._is_closing or not self.sink.enabled:
                return 0.0
            async with self._slots:
                await self._deliver(row)
        if rows:
            return 0.0 if fresh else _TROUBLE_PAUSE
        due_at = await self._store.read(lambda db: outbox.next_due(db, self.sink.name))
        return _LONGEST_SLEEP if due_at is None else max(0.0, due_at - time.time())

    async def _deliver(self, row: Outgoing) -> None:
        answer = await self._try(row)
        now = time.time()
        standing = sinks.judge(self.sink, row.attempts, answer, now)
        settled = Settled(row, standing, now)
        mark = (row.seq, row.attempts)
        self._unwritten.add(mark)
        try:
            await self._store.change(lambda db: outbox.settle(db, settled), [_event(row, standing, now)])
        except HoldfastError as failed:  # written later, when there is room again
            note("outbox-unwritten", sink=self.sink.name, why=failed.message)
            return
        self._unwritten.discard(mark)

    async def _try(self, row: Outgoing) -> SendResult:
        try:
            job = await self._make_job(self.sink, row)
            return await self.link.send(job) if isinstance(job, Job) else job
        except Exception as failed:  # noqa: BLE001  one message that cannot be made must not keep the others waiting
            note("sink-failed", sink=self.sink.name, row=row.seq, why=type(failed).__name__)
            return SendResult(False, f"the message could not be made: {type(failed).__name__}")

    async def _rest(self, pause: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(pause, _LONGEST_SLEEP)):
                await self._woken.wait()


def _event(row: Outgoing, standing: DeliveryState, now: float) -> Event:
    fields: dict[str, Any] = {"sink": row.sink, "attempts": standing.attempts}
    fields |= {name: row.body.get(name) for name in ("id", "kind", "process", "session")}
    if standing.dead_at is not None:
        return Event("sink.dead", now, {**fields, "error": standing.error})
    if standing.due_at is not None:
        return Event("sink.failed", now, {**fields, "error": standing.error, "retry_at": standing.due_at})
    return Event("sink.sent", now, fields)
