"""A copy of the async client: files are read and written in a thread, the bytes move on the loop."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from holdfast.client import copying
from holdfast.client.link import Done, Failed, LinkCut, Output, Want

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.client.aio_link import AsyncLink
    from holdfast.client.copying import Target
    from holdfast.client.link import Answer
    from holdfast.wire.frames import Message

_READ_AHEAD = 4 << 20


class AsyncCopy:
    """One copy on a connection of its own."""

    def __init__(self, connection: AsyncLink) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._answers: deque[Answer | LinkCut] = deque()
        self._has_answers = asyncio.Event()
        self._ahead = 0
        self._is_over = False

    async def send(self, fields: Message, pieces: Iterator[bytes]) -> Message:
        rid = self._connection.ask("put_file", fields, self._listen)
        is_over = False
        while True:
            answer = await self._next()
            if isinstance(answer, Done):
                return answer.value
            for _ in range(answer.count if isinstance(answer, Want) and not is_over else 0):
                data = await self._piece_to_send(pieces)
                self._connection.upload(rid, data)
                if not data:
                    is_over = True
                    break

    async def _piece_to_send(self, pieces: Iterator[bytes]) -> bytes:
        """Raises what the daemon replies meanwhile; the thread then reads to the end of its piece."""
        reading = asyncio.ensure_future(asyncio.to_thread(next, pieces, b""))
        while not reading.done():
            has_answers = asyncio.ensure_future(self._has_answers.wait())
            await asyncio.wait({reading, has_answers}, return_when=asyncio.FIRST_COMPLETED)
            has_answers.cancel()
            if any(isinstance(one, (Failed, LinkCut)) for one in self._answers):
                while True:
                    await self._next()
            self._has_answers.clear()
        return reading.result()

    async def receive(self, fields: Message, target: Target) -> tuple[str | None, int, int]:
        self._connection.ask("get_file", fields, self._listen)
        writing = asyncio.ensure_future(asyncio.to_thread(copying.write, self._next_piece, target))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            self._listen(LinkCut("the copy was given up"))  # the thread removes its temporary file
            await asyncio.wait({writing})
            raise

    def _next_piece(self) -> bytes:
        """Called in the thread."""
        return asyncio.run_coroutine_threadsafe(self._piece(), self._loop).result()

    async def _piece(self) -> bytes:
        while not self._is_over:
            answer = await self._next()
            if isinstance(answer, Output) and answer.data:
                return answer.data
            self._is_over = isinstance(answer, Done)
        return b""

    async def _next(self) -> Answer:
        """Raises what the daemon replied, LinkCut."""
        while not self._answers:
            self._has_answers.clear()
            await self._has_answers.wait()
        answer = self._answers.popleft()
        if isinstance(answer, LinkCut):
            raise copying.cut(answer)
        if isinstance(answer, Failed):
            raise answer.error
        if isinstance(answer, Output):
            self._ahead -= len(answer.data)
            if self._ahead <= _READ_AHEAD // 2:
                self._connection.transport.resume_reading()
        return answer

    def _listen(self, answer: Answer | LinkCut) -> None:
        self._answers.append(answer)
        self._has_answers.set()
        if isinstance(answer, Output):
            self._ahead += len(answer.data)
            if self._ahead > _READ_AHEAD:
                self._connection.transport.pause_reading()
