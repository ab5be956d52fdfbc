"""One sink at work: messages that are due are sent one after the other, and the results are persisted.

Each sink has a worker process of its own. A message over which that dies or hangs counts as not sent, and is tried
again later.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.daemon.core.log import note
from holdfast.daemon.core.tasks import pause
from holdfast.daemon.workers.worker import Worker, WorkerDied, WorkerLaunch
from holdfast.errors import HoldfastError
from holdfast.model.events import Event
from holdfast.model.notices import sinks
from holdfast.model.notices.sinks import DeliveryState, Outgoing, SendResult, Settled, Sink
from holdfast.records import asdict
from holdfast.sinks.message import SinkMessage
from holdfast.store import outbox
from holdfast.store.store import Store

_AT_ONCE = 50
#: The wall clock may be set during a sleep, so no sleep is longer than this.
_LONGEST_SLEEP = 30.0
_RETRY_PAUSE = 2.0

#: The message of an outbox row for a sink, or why there is none.
MakeMessage = Callable[[Sink, Outgoing], Awaitable[SinkMessage | SendResult]]


class SinkWorker(Worker):
    """The sender of one sink: `python -m holdfast.sinks`."""

    name = "sinks"
    #: Longer than any way of sending allows itself.
    hang_timeout = 45.0
    idle_timeout = 60.0
    stderr = asyncio.subprocess.DEVNULL  # what a library prints about an address may hold its secrets
    has_own_session = True

    def launch(self) -> WorkerLaunch:
        return WorkerLaunch(("-P", "-m", "holdfast.sinks"))

    async def send(self, message: SinkMessage) -> SendResult:
        """What came of it. A sender that dies or hangs makes this a failure."""
        try:
            return SendResult(**await self.request(asdict(message)))
        except WorkerDied as died:
            return SendResult(False, f"the sender {died}")
        except OSError as failed:
            return SendResult(False, f"the sender cannot be started: {failed.strerror or failed}")


class SinkLane:
    """`slots` bounds how many sinks send at the same time."""

    def __init__(
        self, sink: Sink, store: Store, worker: SinkWorker, slots: asyncio.Semaphore, make_message: MakeMessage
    ) -> None:
        self.sink = sink
        self.worker = worker
        self._store = store
        self._slots = slots
        self._make_message = make_message
        self._woken = asyncio.Event()
        self._is_closing = False
        #: Rows whose result is not on disk yet: they must not be sent again meanwhile.
        self._unwritten: set[tuple[int, int]] = set()

    def wake(self, sink: Sink | None = None) -> None:
        """There may be something to send, or the configuration of the sink has changed."""
        self.sink = sink or self.sink
        self._woken.set()

    def finish(self) -> None:
        """Let `run` end after the message that is being sent."""
        self._is_closing = True
        self._woken.set()

    async def run(self) -> None:
        """Send until `finish` is called."""
        try:
            while not self._is_closing:
                self._woken.clear()
                try:
                    seconds = await self._round()
                except sqlite3.Error as failed:
                    note("outbox-unreadable", sink=self.sink.name, why=failed)
                    seconds = _RETRY_PAUSE
                await pause(min(seconds, _LONGEST_SLEEP), unless=self._woken)
        finally:
            self.worker.close()

    async def _round(self) -> float:
        """Send what is due. The time until there may be more to send."""
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
            return 0.0 if fresh else _RETRY_PAUSE
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
        except HoldfastError as failed:  # the store writes it later, when there is space again
            note("outbox-unwritten", sink=self.sink.name, why=failed.message)
            return
        self._unwritten.discard(mark)

    async def _try(self, row: Outgoing) -> SendResult:
        try:
            message = await self._make_message(self.sink, row)
            return await self.worker.send(message) if isinstance(message, SinkMessage) else message
        except Exception as failed:  # noqa: BLE001  one message that cannot be built must not delay the others
            note("sink-failed", sink=self.sink.name, row=row.seq, why=type(failed).__name__)
            return SendResult(False, f"the message could not be made: {type(failed).__name__}")


def _event(row: Outgoing, standing: DeliveryState, now: float) -> Event:
    fields: dict[str, Any] = {"sink": row.sink, "attempts": standing.attempts}
    fields |= {name: row.body.get(name) for name in ("id", "kind", "process", "session")}
    if standing.dead_at is not None:
        return Event("sink.dead", now, {**fields, "error": standing.error})
    if standing.due_at is not None:
        return Event("sink.failed", now, {**fields, "error": standing.error, "retry_at": standing.due_at})
    return Event("sink.sent", now, fields)
