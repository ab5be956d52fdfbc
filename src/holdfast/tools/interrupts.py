"""Interrupts: a new message of the user ends the foreground command, or the wait, of a session at once."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.client.aio import AsyncClient

T = TypeVar("T")

#: Reaches the tools of a session in all programs.
TOPIC = "session.interrupt"
_PAUSE = 1.0


class Interrupted(Exception):
    """The call was interrupted."""


class Interrupts:
    """The calls of one session that can be interrupted, from this program and, by an event, from others.

    `same_clock`: events have times of this machine's clock.
    """

    def __init__(self, client: AsyncClient, session: str, same_clock: bool) -> None:
        self._client = client
        self._session = session
        self._same_clock = same_clock
        #: With the time when each began.
        self._under_way: dict[asyncio.Future[None], float] = {}
        self._listener: asyncio.Task[None] | None = None
        #: Marks events of this object, which have no further effect when they come back.
        self._mark = secrets.token_hex(8)

    async def guard(self, work: Coroutine[object, object, T]) -> T:
        """The outcome of the work. Raises Interrupted, once the work was cancelled and has ended."""
        self._listen()
        stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._under_way[stop] = time.time()
        task = asyncio.ensure_future(work)
        try:
            either: list[asyncio.Future[Any]] = [task, stop]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise Interrupted
        finally:
            del self._under_way[stop]
            stop.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait([task])

    def interrupt(self, at: float | None = None) -> int:
        """Interrupt the calls under way in this program, or those that were at that time; how many they were."""
        under_way = [stop for stop, began in self._under_way.items() if not stop.done() and (at is None or began <= at)]
        for stop in under_way:
            stop.set_result(None)
        return len(under_way)

    async def announce(self) -> None:
        """Interrupt the calls of this session in other programs."""
        await self._client.publish(TOPIC, {"session": self._session, "by": self._mark})

    def _listen(self) -> None:
        if self._listener is None or self._listener.done():
            self._listener = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        while True:
            try:
                async with self._client.events(TOPIC, follow=True) as events:
                    async for event in events:
                        if event.get("session") == self._session and event.get("by") != self._mark:
                            self.interrupt(event.get("ts") if self._same_clock else None)
            except HoldfastError:
                await asyncio.sleep(_PAUSE)

    async def close(self) -> None:
        self.interrupt()
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.wait([self._listener])
