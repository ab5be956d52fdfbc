"""One connection to the daemon on an asyncio loop, shared by many calls; and one of its own for each reader."""

from __future__ import annotations

import asyncio
import math
import socket
import time
from collections import deque
from typing import TYPE_CHECKING, Self, TypeVar, cast

from holdfast.client import launch
from holdfast.client.link import (
    GREET_LIMIT,
    ClientProtocol,
    DaemonStopped,
    Done,
    Failed,
    LinkCut,
    Output,
    Want,
    check_version,
    hello,
)
from holdfast.client.reading import ReadingState
from holdfast.errors import HoldfastError, Unreachable
from holdfast.wire.frames import FrameError

if TYPE_CHECKING:
    import _socket
    from collections.abc import Awaitable, Callable

    from holdfast.client.calls import Ask, Reply
    from holdfast.client.link import Answer
    from holdfast.client.reading import Followed
    from holdfast.paths import Paths
    from holdfast.wire.frames import Message

T = TypeVar("T")

_GREETINGS = 5
#: What is read ahead for a reader that is slower than its process.
_READ_AHEAD = 4 << 20


async def open_connection(
    paths: Paths, session: str, delivered: list[str], strict: bool = False, resume: float | None = None
) -> AsyncLink:
    """A greeted connection; the daemon is started where there is none. Raises Unreachable, Denied, Unsupported.

    With `resume`, a daemon that was stopped is not started, but waited for: so many seconds, then raises DaemonStopped.
    """
    until = None if resume is None else time.monotonic() + resume
    for _ in range(_GREETINGS - 1):
        try:
            return await _open_once(paths, session, delivered, strict, until)
        except LinkCut:  # it went away between the connect and the greeting: look again
            continue
    return await _open_once(paths, session, delivered, strict, until)


async def _open_once(paths: Paths, session: str, delivered: list[str], strict: bool, until: float | None) -> AsyncLink:
    while (found := await _connect(paths, launch.connect if until is None else launch.reconnect)) is None:
        if until is not None and time.monotonic() >= until:
            raise DaemonStopped(paths)
        await asyncio.sleep(launch.STOPPED_PAUSE)
    sock = socket.socket(fileno=found.detach())
    _, connection = await asyncio.get_running_loop().create_unix_connection(lambda: AsyncLink(delivered), sock=sock)
    try:
        greeting, _ = await connection.call("hello", hello(session, delivered, strict), GREET_LIMIT)
        check_version(greeting, strict)
    except BaseException:
        await connection.close()
        raise
    return connection


async def _connect(paths: Paths, connect: Callable[[Paths], _socket.socket | None]) -> _socket.socket | None:
    connecting = asyncio.get_running_loop().run_in_executor(None, connect, paths)
    try:
        return await asyncio.shield(connecting)
    except asyncio.CancelledError:  # the thread goes on: its socket must not be left open
        connecting.add_done_callback(_close_found)
        raise


def _close_found(done: asyncio.Future[_socket.socket | None]) -> None:
    if not done.cancelled() and done.exception() is None and (found := done.result()) is not None:
        found.close()


class AsyncLink(asyncio.Protocol):
    """Sends requests and passes each answer to its listener. Unusable after a cut. `delivered`: see ClientProtocol."""

    def __init__(self, delivered: list[str] | None = None) -> None:
        self.is_usable = False
        self._protocol = ClientProtocol(delivered)
        self._listeners: dict[int, Callable[[Answer | LinkCut], None]] = {}
        self._closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.is_usable = True

    def data_received(self, data: bytes) -> None:
        try:
            answers = self._protocol.feed(data)
        except FrameError:
            self.transport.abort()
            return
        for answer in answers:
            listener = self._listeners.get(answer.rid)
            if listener is not None:
                listener(answer)

    def connection_lost(self, why: Exception | None) -> None:
        self.is_usable = False
        listeners, self._listeners = self._listeners, {}
        for listener in listeners.values():
            listener(LinkCut(f"the link to the daemon was cut: {why or 'the daemon went away'}"))
        if not self._closed.done():
            self._closed.set_result(None)

    async def close(self) -> None:
        self.is_usable = False
        self.transport.close()
        await asyncio.shield(self._closed)

    def ask(self, op: str, arguments: Message, listener: Callable[[Answer | LinkCut], None]) -> int:
        """Send a question; its answers go to the listener."""
        if not self.is_usable:
            raise LinkCut("the link to the daemon was cut")
        rid, question = self._protocol.ask(op, arguments)
        self._listeners[rid] = listener
        self.transport.write(question)
        return rid

    def upload(self, rid: int, data: bytes) -> None:
        """Send a piece that the daemon wants (`Want`); an empty one is the end."""
        if self.is_usable:
            self.transport.write(self._protocol.piece(rid, data))

    async def call(self, op: str, arguments: Message, limit: float | None = None) -> Reply:
        """Ask and wait for the answer. Raises what the daemon answered, and Unreachable after `limit` seconds."""
        output: list[Output] = []
        answered: asyncio.Future[Done] = asyncio.get_running_loop().create_future()

        def listen(answer: Answer | LinkCut) -> None:
            if isinstance(answer, Output):
                output.append(answer)
            elif not isinstance(answer, Want) and not answered.done():
                _settle(answered, answer)

        rid = self.ask(op, arguments, listen)
        try:
            async with asyncio.timeout(limit):
                done = await answered
        except TimeoutError:
            raise Unreachable(f"the daemon does not answer {op!r}") from None
        finally:
            self._listeners.pop(rid, None)
            if not answered.done() or answered.cancelled():
                self.give_up(rid)
        self.say_got(done)
        return done.value, output

    def say_got(self, answer: Answer) -> None:
        """Confirm an answer with notifications; not when the caller was cancelled before it came."""
        if (confirmation := self._protocol.confirmation(answer)) and self.is_usable:
            self.transport.write(confirmation)

    def give_up(self, rid: int) -> None:
        """Cancel a question."""
        self._listeners.pop(rid, None)
        if self.is_usable:
            self.transport.write(self._protocol.cancel(rid))


def _settle(answered: asyncio.Future[Done], answer: Done | Failed | LinkCut) -> None:
    if isinstance(answer, Done):
        answered.set_result(answer)
    else:
        answered.set_exception(answer.error if isinstance(answer, Failed) else answer)


class AsyncReading(ReadingState[T]):
    """An async iterator over the items of a stream. To leave it early, close it or use it in `async with`."""

    def __init__(
        self,
        open_connection: Callable[[float | None], Awaitable[AsyncLink]],
        followed: Followed[T],
        call: Callable[[Ask], Awaitable[object]] | None = None,
    ) -> None:
        self._open_connection = open_connection
        self._followed = followed
        self._call = call
        self._connection: AsyncLink | None = None
        #: None before the first connection: the daemon is started for that one alone.
        self._resume: float | None = None
        self._answers: deque[Answer | LinkCut] = deque()
        self._ahead = 0
        self._has_answers = asyncio.Event()
        self._items: list[T] = []
        self._last: T | None = None

    def __aiter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """The item that was given last is not acknowledged by this."""
        connection, self._connection = self._connection, None
        self._answers.clear()
        self._ahead = 0
        if connection is not None:
            await connection.close()

    async def __anext__(self) -> T:
        if self._last is not None and self._call is not None:
            if (ask := self._followed.acknowledgement(self._last)) is not None:
                await self._call(ask)
            self._last = None
        while not self._items:
            if self._followed.is_over:
                await self.close()
                raise StopAsyncIteration
            left = self._followed.time_left()
            try:
                async with asyncio.timeout(left):
                    self._items = await self._hear()
            except TimeoutError:
                if left is None:
                    raise
                await self.close()
                raise StopAsyncIteration from None
        self._last = self._items.pop(0)
        return self._last

    async def _hear(self) -> list[T]:
        """The items of the next answer."""
        try:
            answer = await self._next()
            assert self._connection is not None
            return self._followed.take(answer, self._ask, self._connection.give_up)
        except LinkCut as cut:
            await self.close()
            self._followed.note_cut(cut)
            return []
        except HoldfastError:
            await self.close()
            raise

    def _ask(self, op: str, arguments: Message) -> int:
        assert self._connection is not None
        return self._connection.ask(op, arguments, self._listen)

    async def _next(self) -> Answer:
        if self._connection is None:
            self._connection = await self._open_connection(self._resume)
            self._resume = math.inf
            self._followed.begin(self._ask)
        while not self._answers:
            self._has_answers.clear()
            await self._has_answers.wait()
        answer = self._answers.popleft()
        if isinstance(answer, LinkCut):
            raise answer
        self._connection.say_got(answer)
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
            if self._ahead > _READ_AHEAD and self._connection is not None:
                self._connection.transport.pause_reading()
