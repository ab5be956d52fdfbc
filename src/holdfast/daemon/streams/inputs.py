"""Writing to processes, so that a cut line to the keeper neither loses nor doubles a byte."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from weakref import WeakValueDictionary

from holdfast.model.ids import ProcessId
from holdfast.places.keeper_link import KeeperLink


class Inputs:
    """Writers of one process take turns; each write says where it begins, and so can be repeated."""

    def __init__(self, keeper: KeeperLink) -> None:
        self._keeper = keeper
        self._accepted: dict[ProcessId, int] = {}
        #: What we wrote ourselves, by where it begins: whoever repeats a write does not know of it.
        self._replies: dict[ProcessId, dict[int, int]] = {}
        self._turns: WeakValueDictionary[ProcessId, asyncio.Lock] = WeakValueDictionary()
        self._listeners: dict[ProcessId, set[asyncio.Event]] = {}

    async def write(self, process_id: ProcessId, data: bytes, at: int | None) -> int:
        """How many bytes were written to it in all, with these. Raises Refused."""
        lock = self._turns.get(process_id)
        if lock is None:
            lock = self._turns[process_id] = asyncio.Lock()
        async with lock:
            begin = await self._reach(process_id) if at is None else self._behind_replies(process_id, at)
            self._accepted.pop(process_id, None)  # not known again before the keeper has said it
            encoded = b64encode(data).decode()
            answer = await self._keeper.request("write", id=process_id, data=encoded, at=begin)
            accepted = self._accepted[process_id] = int(answer["accepted"])
            for heard in self._listeners.get(process_id, ()):
                heard.set()
            return accepted

    async def fresh(self, process_id: ProcessId, data: bytes, at: int | None) -> tuple[bytes, int | None]:
        """What of a write was not taken in before, and where that begins. Nothing else is written. Raises Refused."""
        reached = await self._reach(process_id)
        if at is None or reached is None:
            return data, at
        begin = self._behind_replies(process_id, at)
        return data[max(0, reached - begin) :], max(begin, reached)

    @contextmanager
    def listening(self, process_id: ProcessId) -> Iterator[asyncio.Event]:
        """An event that is set whenever something was written to it."""
        heard = asyncio.Event()
        listeners = self._listeners.setdefault(process_id, set())
        listeners.add(heard)
        try:
            yield heard
        finally:
            listeners.discard(heard)
            if not listeners:
                self._listeners.pop(process_id, None)

    async def reply(self, process_id: ProcessId, data: bytes) -> tuple[int, int]:
        """Write in the name of a terminal; where that begins, and its size. Raises Refused."""
        begin = await self.write(process_id, data, None) - len(data)
        self.replied(process_id, {begin: len(data)})
        return begin, len(data)

    def replied(self, process_id: ProcessId, replies: Mapping[int, int]) -> None:
        """What was written in the name of a terminal: sizes by where they begin."""
        self._replies.setdefault(process_id, {}).update(replies)

    def forget(self, process_id: ProcessId) -> None:
        self._accepted.pop(process_id, None)
        self._replies.pop(process_id, None)

    def _behind_replies(self, process_id: ProcessId, at: int) -> int:
        """Where a write begins of which the writer only knows that it is to follow byte `at` of its own."""
        replies = self._replies.get(process_id, {})
        while at in replies:
            at += replies[at]
        return at

    async def _reach(self, process_id: ProcessId) -> int | None:
        """Where its input stands; None when it takes none, which the keeper says best itself."""
        if process_id not in self._accepted:
            stdin = (await self._keeper.request("report", id=process_id))["stdin"]
            if stdin is None:
                return None
            self._accepted[process_id] = int(stdin["accepted"])
        return self._accepted[process_id]
