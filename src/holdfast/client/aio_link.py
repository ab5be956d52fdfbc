"""One connection to the daemon on an asyncio loop, shared by many calls; and one of its own for each reader."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from typing import TYPE_CHECKING, Self, cast

from holdfast.client import launch
from holdfast.client.conversation import Conversation, Done, Failed, Output
from holdfast.client.link import GREET_LIMIT, LinkCut, check_version, hello
from holdfast.errors import HoldfastError, Unreachable
from holdfast.wire.frames import FrameError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.client.conversation import Answer
    from holdfast.client.following import Followed
    from holdfast.client.process import Process
    from holdfast.client.verbs import Reply
    from holdfast.paths import Paths
    from holdfast.wire.frames import Message

_GREETINGS = 5
#: What is read ahead for a reader that is slower than its process.
_READ_AHEAD = 4 << 20


async def open_connection(paths: Paths, session: str, had: list[str], strict: bool = False) -> Connection:
    """A greeted connection; the daemon is started where there is none. Raises Unreachable, Denied, Unsupported."""
    for _ in range(_GREETINGS - 1):
        try:
            return await _open_once(paths, session, had, strict)
        except LinkCut:  # it went away between the connect and the greeting: look again
            continue
    return await _open_once(paths, session, had, strict)


async def _open_once(paths: Paths, session: str, had: list[str], strict: bool = False) -> Connection:
    connecting = asyncio.get_running_loop().run_in_executor(None, launch.connect, paths)
    try:
        found = await asyncio.shield(connecting)
    except asyncio.CancelledError:  # the thread goes on: its socket must not be left open
        connecting.add_done_callback(lambda done: None if done.exception() else done.result().close())
        raise
    sock = socket.socket(fileno=found.detach())
    _, connection = await asyncio.get_running_loop().create_unix_connection(lambda: Connection(had), sock=sock)
    try:
        greeting, _ = await connection.call("hello", hello(session, had, strict), GREET_LIMIT)
        check_version(greeting, strict)
    except BaseException:
        await connection.close()
        raise
    return connection


class Connection(asyncio.Protocol):
    """Questions out, answers to those who asked. Unusable once it was cut. `had`: see Conversation."""

    def __init__(self, had: list[str] | None = None) -> None:
        self.is_usable = False
        self._conversation = Conversation(had)
        self._listeners: dict[int, Callable[[Answer | LinkCut], None]] = {}
        self._closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.is_usable = True

    def data_received(self, data: bytes) -> None:
        try:
            answers = self._conversation.feed(data)
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
        """Send a question; what comes for it goes to the listener."""
        if not self.is_usable:
            raise LinkCut("the link to the daemon was cut")
        rid, question = self._conversation.ask(op, arguments)
        self._listeners[rid] = listener
        self.transport.write(question)
        return rid

    async def call(self, op: str, arguments: Message, limit: float | None = None) -> Reply:
        """Ask and wait for the answer. Raises what the daemon answered, and Unreachable after `limit` seconds."""
        output: list[Output] = []
        answered: asyncio.Future[Done] = asyncio.get_running_loop().create_future()

        def listen(answer: Answer | LinkCut) -> None:
            if isinstance(answer, Output):
                output.append(answer)
            elif not answered.done():
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
        """Whoever asked has it now. One who was cancelled just before has not, and the daemon is to know."""
        if (got := self._conversation.got(answer)) and self.is_usable:
            self.transport.write(got)

    def give_up(self, rid: int) -> None:
        """Tell the daemon that nobody waits for the answer any more."""
        self._listeners.pop(rid, None)
        if self.is_usable:
            self.transport.write(self._conversation.cancel(rid))


def _settle(answered: asyncio.Future[Done], answer: Done | Failed | LinkCut) -> None:
    if isinstance(answer, Done):
        answered.set_result(answer)
    else:
        answered.set_exception(answer.error if isinstance(answer, Failed) else answer)


class AsyncReading:
    """An async iterator over pieces of output. Close it, or use it in `async with`, when you leave it early."""

    def __init__(self, open_connection: Callable[[], Awaitable[Connection]], following: Followed) -> None:
        self._open_connection = open_connection
        self._following = following
        self._connection: Connection | None = None
        self._heard: deque[Answer | LinkCut] = deque()
        self._ahead = 0
        self._news = asyncio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def answer(self) -> Message | None:
        """What the daemon said at the end of the stream; None before."""
        return self._following.cursors[0].answer

    @property
    def ended(self) -> Process | None:
        """The process after its end, where that was waited for."""
        return self._following.ended

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        self._heard.clear()
        self._ahead = 0
        if connection is not None:
            await connection.close()

    async def __anext__(self) -> Output:
        while not self._following.is_over:
            try:
                piece = self._take(await self._next())
            except LinkCut as cut:
                await self.close()
                self._following.note_cut(cut)
            except HoldfastError:
                await self.close()
                raise
            else:
                if piece is not None:
                    return piece
        await self.close()
        raise StopAsyncIteration

    def _take(self, answer: Answer) -> Output | None:
        assert self._connection is not None
        return self._following.take(answer, self._ask, self._connection.give_up)

    def _ask(self, op: str, arguments: Message) -> int:
        assert self._connection is not None
        return self._connection.ask(op, arguments, self._listen)

    async def _next(self) -> Answer:
        if self._connection is None:
            self._connection = await self._open_connection()
            self._following.begin(self._ask)
        while not self._heard:
            self._news.clear()
            await self._news.wait()
        answer = self._heard.popleft()
        if isinstance(answer, LinkCut):
            raise answer
        self._connection.say_got(answer)
        if isinstance(answer, Output):
            self._ahead -= len(answer.data)
            if self._ahead <= _READ_AHEAD // 2:
                self._connection.transport.resume_reading()
        return answer

    def _listen(self, answer: Answer | LinkCut) -> None:
        self._heard.append(answer)
        self._news.set()
        if isinstance(answer, Output):
            self._ahead += len(answer.data)
            if self._ahead > _READ_AHEAD and self._connection is not None:
                self._connection.transport.pause_reading()
