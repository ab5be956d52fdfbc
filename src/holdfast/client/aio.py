"""The async client: the same calls as `sync`, for asyncio."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Self

from holdfast.client import calls
from holdfast.client.aio_calls import AsyncCalls
from holdfast.client.aio_link import AsyncLink, AsyncReading, open_connection
from holdfast.client.launch import STOPPED_PAUSE, in_own_words
from holdfast.client.link import CONFIRM_LIMIT, MAX_CUTS, DaemonStopped, LinkCut, hello
from holdfast.errors import BadValue, HoldfastError

if TYPE_CHECKING:
    from holdfast.client.calls import Ask, Call, Reply, T
    from holdfast.client.copying import Place, Source, Target
    from holdfast.client.reading import Followed
    from holdfast.wire.frames import Message


def aconnect(
    session: str | None = None,
    *,
    home: str | os.PathLike[str] | None = None,
    url: str | None = None,
    token: str | None = None,
    strict: bool = False,
) -> Connecting:
    """The async twin of `connect`: `async with aconnect() as hf`, or `hf = await aconnect()` and `await hf.close()`."""
    return Connecting(AsyncClient(session, home=home, url=url, token=token, strict=strict))


class Connecting:
    """A client that is not connected yet: to be awaited, or entered."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def __await__(self) -> Generator[object, None, AsyncClient]:
        return self._client.__aenter__().__await__()

    async def __aenter__(self) -> AsyncClient:
        return await self._client.__aenter__()

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()


class AsyncClient(AsyncCalls):
    """A client with one connection that all tasks share.

    After a cut it connects again, and sends again what may be repeated. A cancelled call is cancelled at the daemon,
    too. Every method raises a HoldfastError.
    """

    def __init__(
        self,
        session: str | None = None,
        *,
        home: str | os.PathLike[str] | None = None,
        url: str | None = None,
        token: str | None = None,
        strict: bool = False,
    ) -> None:
        super().__init__(session, home=home, url=url, token=token, strict=strict)
        self._connection: AsyncLink | None = None
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self._connected()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; calls under way end with an error. The processes go on."""
        if self._delivered and self._is_open:
            await self._confirm()
        self._is_open = False
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def copy_to(self, place: Place, source: Source, path: str, *, follow: bool = False) -> Message:
        """Copy a file or a directory of this machine to a place: `local`, a process, or `task/T`.

        Returns its `path` there, and the numbers of `files` and `bytes`.

        `source` is a path, or a binary file that is read to its end. If `path` is a directory, the copy is put into it;
        `DIR/.` copies what is in DIR. A file is replaced at once, or stays as it was. `follow`: if `source` is a
        symbolic link, what it points to is copied.
        """
        from holdfast.client import aio_copying, copying

        fields, pieces = await asyncio.to_thread(copying.upload_request, place, source, path, follow)
        connection = await self._open()
        try:
            return await aio_copying.AsyncCopy(connection).send(fields, pieces)
        finally:
            await connection.close()

    async def copy_from(self, place: Place, path: str, target: Target, *, follow: bool = False) -> Message:
        """Copy a file or a directory of a place to this machine, as `copy_to`. Returns its `path` here.

        `target` is a path, or a binary file that gets the bytes of one file.
        """
        from holdfast.client import aio_copying, copying

        fields = copying.download_request(place, path, target, follow)
        connection = await self._open()
        try:
            copied = await aio_copying.AsyncCopy(connection).receive(fields, target)
            return dict(zip(("path", "files", "bytes"), copied, strict=True))
        finally:
            await connection.close()

    async def _confirm(self) -> None:
        """As that of the blocking client."""
        greeting = hello(self.session, self._delivered, self.is_strict)
        for _ in range(2):
            try:
                connection = await self._connected(resume=0.0)
                await connection.call("hello", greeting, CONFIRM_LIMIT)
                return
            except LinkCut:
                continue
            except HoldfastError:
                return

    async def _do(self, call: Call[T]) -> T:
        try:
            ask = next(call)
            while True:
                try:
                    reply = await self._call(ask)
                except HoldfastError as error:
                    ask = call.throw(error)
                else:
                    ask = call.send(reply)
        except StopIteration as done:
            result: T = done.value
            return result

    def _reading(self, followed: Followed[T]) -> AsyncReading[T]:
        if not self._is_open:
            raise calls.closed()
        return AsyncReading(self._open, followed, self._call)

    async def _call(self, ask: Ask) -> Reply:
        for _ in range(MAX_CUTS if ask.may_repeat else 0):
            try:
                return await self._call_once(ask)
            except LinkCut:
                continue
        return await self._call_once(ask)

    async def _call_once(self, ask: Ask) -> Reply:
        connection = await self._connected(ask.resume)
        try:
            return await connection.call(ask.op, ask.arguments, ask.limit)
        except BadValue as error:
            raise in_own_words(ask.op, error) from None

    async def _connected(self, resume: float | None = None) -> AsyncLink:
        until = time.monotonic() + (resume or 0.0)
        while True:
            try:
                async with self._opening:
                    if not self._is_open:
                        raise calls.closed()
                    if self._connection is None or not self._connection.is_usable:
                        self._connection = await self._open(None if resume is None else 0.0)
                    return self._connection
            except DaemonStopped:
                if time.monotonic() >= until:
                    raise
            await asyncio.sleep(STOPPED_PAUSE)  # without the lock: another task may start it

    async def _open(self, resume: float | None = None) -> AsyncLink:
        if self._address is None:
            return await open_connection(self.paths, self.session, self._delivered, self.is_strict, resume)
        from holdfast.client.http.aio import open_http_connection
        from holdfast.client.http.link import RECONNECT_TIMEOUT

        connection = await open_http_connection(self._address, self.session, self._connect_timeout, self.is_strict)
        self._connect_timeout = RECONNECT_TIMEOUT
        return connection
