"""Publishes the agent's events in their order, without making it wait. Pieces of text are joined meanwhile."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.client.aio import AsyncClient

_ATTEMPTS = 3
_PAUSE = 0.3
_TICK = 2.0
#: Events with text of others are cut to this many characters; all of it is in the session log.
LONGEST_TEXT = 8000
_LONGEST_DELTA = 32_000


class _Announcement(NamedTuple):
    topic: str
    fields: dict[str, Any]
    is_kept: bool


class Announcer:
    """`kept` events are on the daemon's disk and can be read later; `shown` ones are for present front ends alone."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._waiting: deque[_Announcement] = deque()
        self._has_some = asyncio.Event()
        self._is_done = asyncio.Event()

    def kept(self, topic: str, **fields: Any) -> None:
        self._put(_Announcement(topic, fields, is_kept=True))

    def shown(self, topic: str, **fields: Any) -> None:
        self._put(_Announcement(topic, fields, is_kept=False))

    def delta(self, topic: str, entry: int, text: str) -> None:
        """A piece of text of an entry to come; pieces that wait are sent as one."""
        last = self._waiting[-1] if self._waiting else None
        if last is not None and last.topic == topic and len(last.fields["text"]) < _LONGEST_DELTA:
            last.fields["text"] += text
        else:
            self.shown(topic, entry=entry, text=text)

    @asynccontextmanager
    async def progress(self, **fields: Any) -> AsyncIterator[None]:
        """Says every two seconds that a call runs, and for how long."""

        async def tick() -> None:
            for count in itertools.count(1):
                await asyncio.sleep(_TICK)
                self.shown("tui.tool.progress", **fields, seconds=count * _TICK)

        ticking = asyncio.ensure_future(tick())
        try:
            yield
        finally:
            ticking.cancel()

    def _put(self, announcement: _Announcement) -> None:
        self._waiting.append(announcement)
        self._is_done.clear()
        self._has_some.set()

    async def run(self) -> None:
        """Publishes until it is cancelled."""
        while True:
            while self._waiting:
                await self._publish(self._waiting.popleft())
            self._is_done.set()
            self._has_some.clear()
            await self._has_some.wait()

    async def _publish(self, one: _Announcement) -> None:
        payload = {"session": self._client.session, **one.fields}
        for _ in range(_ATTEMPTS if one.is_kept else 1):
            try:
                await self._client.publish(one.topic, payload, transient=not one.is_kept)
                return
            except HoldfastError:
                await asyncio.sleep(_PAUSE)  # the session log has what matters

    async def flush(self, timeout: float = 3.0) -> None:
        """Until all is published."""
        try:
            async with asyncio.timeout(timeout):
                await self._is_done.wait()
        except TimeoutError:
            return
