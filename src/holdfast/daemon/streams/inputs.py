"""Writing to the input of processes. A lost connection to the keeper neither loses nor repeats a byte."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from holdfast.daemon.core.tasks import ChangeSignals, KeyedLocks
from holdfast.model.process import ProcessId
from holdfast.places.keeper_link import KeeperLink


class Inputs:
    """Writers of one process take turns. Each write carries its offset, so it can be repeated."""

    def __init__(self, keeper_of: Callable[[ProcessId], KeeperLink]) -> None:
        self._keeper_of = keeper_of
        self._accepted: dict[ProcessId, int] = {}
        #: Replies of the daemon to terminal queries, by offset: a client that repeats a write does not know of them.
        self._replies: dict[ProcessId, dict[int, int]] = {}
        self._turns: KeyedLocks[ProcessId] = KeyedLocks()
        self._writes: ChangeSignals[ProcessId] = ChangeSignals()

    async def write(self, process_id: ProcessId, data: bytes, at: int | None) -> int:
        """The number of bytes written to it in all, with these. Raises Refused."""
        async with self._turns[process_id]:
            begin = await self._reach(process_id) if at is None else self._behind_replies(process_id, at)
            self._accepted.pop(process_id, None)  # unknown until the keeper replies
            encoded = b64encode(data).decode()
            answer = await self._keeper_of(process_id).request("write", id=process_id, data=encoded, at=begin)
            accepted = self._accepted[process_id] = int(answer["accepted"])
            self._writes.send(process_id)
            return accepted

    async def fresh(self, process_id: ProcessId, data: bytes, at: int | None) -> tuple[bytes, int | None]:
        """The part of a write that was not accepted before, and its offset. Writes nothing. Raises Refused."""
        reached = await self._reach(process_id)
        if at is None or reached is None:
            return data, at
        begin = self._behind_replies(process_id, at)
        return data[max(0, reached - begin) :], max(begin, reached)

    def listening(self, process_id: ProcessId) -> AbstractContextManager[asyncio.Event]:
        """An event that is set at every write to it."""
        return self._writes.listening(process_id)

    async def reply(self, process_id: ProcessId, data: bytes) -> tuple[int, int]:
        """Write the reply of a terminal; its offset and size. Raises Refused."""
        begin = await self.write(process_id, data, None) - len(data)
        self.replied(process_id, {begin: len(data)})
        return begin, len(data)

    def replied(self, process_id: ProcessId, replies: Mapping[int, int]) -> None:
        """Note replies of a terminal that were written: their sizes by offset."""
        self._replies.setdefault(process_id, {}).update(replies)

    def forget(self, process_id: ProcessId) -> None:
        self._accepted.pop(process_id, None)
        self._replies.pop(process_id, None)

    def _behind_replies(self, process_id: ProcessId, at: int) -> int:
        """The offset of a write, behind replies that the writer does not know of."""
        replies = self._replies.get(process_id, {})
        while at in replies:
            at += replies[at]
        return at

    async def _reach(self, process_id: ProcessId) -> int | None:
        """The number of bytes accepted so far; None when it takes no input: the keeper will refuse the write."""
        if process_id not in self._accepted:
            stdin = (await self._keeper_of(process_id).request("report", id=process_id))["stdin"]
            if stdin is None:
                return None
            self._accepted[process_id] = int(stdin["accepted"])
        return self._accepted[process_id]
