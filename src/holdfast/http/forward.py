"""One request to the MCP worker, and its answer as it comes: HTTP/1.1 on a connection of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import httptools

from holdfast.errors import Unreachable

Headers = Sequence[tuple[str, str]]

_PIECE = 64 << 10


class Exchange:
    """`begin` sends the request and returns when the head of the answer is there; `pieces` brings its body."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._has_head = False
        self._is_over = False
        self.status = 0
        self.headers: list[tuple[str, str]] = []

    async def begin(self, method: str, path: str, headers: Headers, body: bytes) -> None:
        """Raises Unreachable when the worker dies before it answers."""
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
        lines += [f"content-length: {len(body)}", "connection: close", "", ""]
        try:
            self._writer.write("\r\n".join(lines).encode("latin-1") + body)
            await self._writer.drain()
            while not self._has_head:
                await self._feed()
        except OSError as gone:
            raise _died() from gone

    async def pieces(self) -> AsyncIterator[bytes]:
        """No more is read than is taken. Raises Unreachable when the worker dies in the middle."""
        while True:
            body, self._body = self._body, []
            for piece in body:
                yield piece
            if self._is_over:
                return
            try:
                await self._feed()
            except OSError as gone:
                raise _died() from gone

    async def _feed(self) -> None:
        data = await self._reader.read(_PIECE)
        if not data:
            raise _died()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as broken:
            raise _died() from broken
        if self._has_head:
            self.status = self._parser.get_status_code()

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self._has_head = True

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        self._is_over = True


def _died() -> Unreachable:
    return Unreachable("the MCP worker died over this request", next="try again; what it started goes on")
