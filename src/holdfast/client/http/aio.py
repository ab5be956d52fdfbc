"""The same as `link.py` for asyncio, with the interface of `client.aio_link.AsyncLink`."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.client.aio_link import AsyncLink
from holdfast.client.http.exchange import HttpExchange, check_listener
from holdfast.client.http.link import RECONNECT_TIMEOUT, unreachable
from holdfast.client.link import LinkCut, Want
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.client.http.exchange import HttpAddress
    from holdfast.client.link import Answer
    from holdfast.wire.frames import Message

_READ_SIZE = 1 << 18
_CONNECT_INTERVAL = 0.05

_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class HttpConnection(AsyncLink):
    """Each request has a connection while it is under way. Idle ones are kept for later requests."""

    def __init__(self, address: HttpAddress, session: str, strict: bool = False) -> None:
        super().__init__()
        self.is_usable = True
        self._reading = self.transport = _ReadControl()
        self._address = address
        self._session = session
        self._strict = strict
        self._idle: list[_Streams] = []
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._uploading: dict[int, tuple[HttpExchange, asyncio.StreamWriter]] = {}
        self._last_rid = 0

    async def close(self) -> None:
        self.is_usable = False
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _, writer in self._idle:
            writer.close()
        self._idle = []

    def ask(self, op: str, arguments: Message, listener: Callable[[Answer | LinkCut], None]) -> int:
        if not self.is_usable:
            raise LinkCut("the link to the daemon was cut")
        rid = self._last_rid + 1
        exchange = HttpExchange(rid, op, arguments, self._address, self._session, self._strict)
        self._last_rid = rid
        self._listeners[rid] = listener
        task = self._tasks[rid] = asyncio.get_running_loop().create_task(self._do(exchange))
        task.add_done_callback(lambda _: self._ended(rid))
        return rid

    def _ended(self, rid: int) -> None:
        self._tasks.pop(rid, None)
        self._uploading.pop(rid, None)

    def upload(self, rid: int, data: bytes) -> None:
        if rid in self._uploading:
            exchange, writer = self._uploading[rid]
            writer.write(exchange.piece(data))
            if data:
                self._draining = asyncio.get_running_loop().create_task(self._want_more(rid, writer))

    async def _want_more(self, rid: int, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):  # the exchange itself finds that it was cut
            await writer.drain()
            self._pass(rid, Want(rid, 1))

    def say_got(self, answer: Answer) -> None:
        """Over HTTP a reply is delivered when it was sent."""

    def give_up(self, rid: int) -> None:
        self._listeners.pop(rid, None)
        if rid in self._tasks:
            self._tasks[rid].cancel()

    async def _do(self, exchange: HttpExchange) -> None:
        try:
            reader, writer = await self._take()
            try:
                await self._talk(exchange, reader, writer)
            except BaseException:
                writer.close()
                raise
        except HoldfastError as failed:
            self._pass(exchange.rid, failed if isinstance(failed, LinkCut) else LinkCut(failed.message))
        except OSError as cut:
            self._pass(exchange.rid, LinkCut(f"the link to the daemon was cut: {cut}"))

    async def _talk(self, exchange: HttpExchange, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(exchange.request)
        if exchange.uploads:
            self._uploading[exchange.rid] = exchange, writer
            self._pass(exchange.rid, Want(exchange.rid, 1))
        while not exchange.is_over:
            await self._reading.open.wait()
            data = await reader.read(_READ_SIZE)
            for answer in exchange.feed(data):
                self._pass(exchange.rid, answer)
            if not data:
                raise LinkCut("the link to the daemon was cut: the daemon closed the connection")
        if exchange.keeps_alive and self.is_usable:
            self._idle.append((reader, writer))
        else:
            writer.close()

    def _pass(self, rid: int, answer: Answer | LinkCut) -> None:
        listener = self._listeners.get(rid)
        if listener is not None:
            listener(answer)

    async def _take(self) -> _Streams:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return await self._open(RECONNECT_TIMEOUT)

    async def connect(self) -> None:
        """Raises Unreachable at once where no daemon listens."""
        self._idle.append(await self._open(0.0))

    async def _open(self, connect_timeout: float) -> _Streams:
        loop = asyncio.get_running_loop()
        until = loop.time() + connect_timeout
        while True:
            try:
                reader, writer = await asyncio.open_connection(self._address.host, self._address.port)
            except OSError as refused:
                if loop.time() > until:
                    raise unreachable(self._address, refused) from refused
                await asyncio.sleep(_CONNECT_INTERVAL)
            else:
                sock = writer.get_extra_info("socket")
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                try:
                    check_listener(self._address, sock)
                except BaseException:
                    writer.close()
                    raise
                return reader, writer


class _ReadControl(asyncio.Transport):
    """Stops reading while the consumer is slower than the process."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()
        self.open.set()

    def pause_reading(self) -> None:
        self.open.clear()

    def resume_reading(self) -> None:
        self.open.set()


async def open_http_connection(
    address: HttpAddress, session: str, connect_timeout: float, strict: bool = False
) -> HttpConnection:
    """A connection to a daemon. With `connect_timeout` 0, the daemon must answer and accept the token now.

    Raises Unreachable, Denied.
    """
    connection = HttpConnection(address, session, strict)
    if connect_timeout == 0.0:
        try:
            await connection.connect()
            await connection.call("status", {}, RECONNECT_TIMEOUT)
        except BaseException:
            await connection.close()
            raise
    return connection
