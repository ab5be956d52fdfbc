"""/mcp: the Model Context Protocol over HTTP. Requests are forwarded to the worker process that speaks it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import httptools

from holdfast.errors import Unreachable
from holdfast.http.request import HttpRequest
from holdfast.http.responses import Headers, HttpRefusal, Response, Send, encoded_headers
from holdfast.http.routing import Route, Success

#: Headers that are forwarded to the worker, and back to the client; beside all that begin with `mcp-`.
_FORWARDED = frozenset({"accept", "content-type", "last-event-id"})
_RETURNED = frozenset({"content-type", "allow", "retry-after"})
_ALLOW = "DELETE, GET, OPTIONS, POST"
_READ_SIZE = 64 << 10
_EVENT_ENDS = (b"\r\n\r\n", b"\n\n")
_INTERNAL_ERROR = -32603
_DIED = "the MCP worker died over this request: try again; processes that it started go on"


async def serve(request: HttpRequest) -> Response:
    if request.method == "HEAD":
        raise HttpRefusal(405, "unsupported", "HEAD is not allowed here", next=_ALLOW, headers=(("allow", _ALLOW),))
    body = await request.body() if request.method == "POST" else b""
    stack = AsyncExitStack()
    try:
        exchange = WorkerExchange(*await stack.enter_async_context(request.context.mcp.connection()))
        await request.while_connected(exchange.begin(request.method, "/mcp", _headers(request), body))
        if not _is_events(exchange):
            return await _whole(request, exchange, stack)
    except BaseException:
        await stack.aclose()
        raise
    return _ForwardedEvents(request, exchange, stack, body)


def _headers(request: HttpRequest) -> list[tuple[str, str]]:
    """Headers for the worker. A client inside a held process speaks for its session, and cannot approve."""
    call = request.call()
    forwarded = [("host", "localhost")]
    for name, values in request.headers.items():
        if name in _FORWARDED or name.startswith("mcp-"):
            forwarded.append((name, ", ".join(values)))
    if call.session is not None:
        forwarded.append(("holdfast-session", call.session.encode().decode("latin-1")))
    if call.is_bound:
        forwarded.append(("holdfast-bound", "true"))
    return forwarded


def _is_events(exchange: WorkerExchange) -> bool:
    return dict(exchange.headers).get("content-type", "").startswith("text/event-stream")


def _returned(exchange: WorkerExchange) -> list[tuple[str, str]]:
    return [pair for pair in exchange.headers if pair[0] in _RETURNED or pair[0].startswith("mcp-")]


async def _whole(request: HttpRequest, exchange: WorkerExchange, stack: AsyncExitStack) -> Response:
    """A response that is sent when it is complete. Raises Unreachable when the worker dies over it."""

    async def read() -> bytes:
        return b"".join([piece async for piece in exchange.pieces()])

    async with stack:
        body = await request.while_connected(read())
    return Response(exchange.status, body, headers=_returned(exchange))


class _ForwardedEvents(Response):
    """The worker's events. When the worker dies, the stream ends with an error event."""

    def __init__(self, request: HttpRequest, exchange: WorkerExchange, stack: AsyncExitStack, body: bytes) -> None:
        super().__init__(exchange.status, headers=_returned(exchange))
        self._request = request
        self._exchange = exchange
        self._stack = stack
        self._request_body = body

    async def send(self, send: Send) -> None:
        async with self._stack:
            await send(
                {"type": "http.response.start", "status": self.status, "headers": encoded_headers("", self.headers)}
            )
            await self._request.while_connected(self._forward(send))
            await send({"type": "http.response.body", "body": b""})

    async def _forward(self, send: Send) -> None:
        try:
            async for events in whole_events(self._exchange.pieces()):
                await send({"type": "http.response.body", "body": events, "more_body": True})
        except Unreachable:
            last = _closing_event(self._request_body)
            await send({"type": "http.response.body", "body": last, "more_body": True})


class WorkerExchange:
    """One request to the worker, on a connection of its own: `begin` returns with the head, `pieces` has the body."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        died: Callable[[], Unreachable] | None = None,
    ) -> None:
        self._died = died or _died
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
            raise self._died() from gone

    async def pieces(self) -> AsyncIterator[bytes]:
        """Reads no more than is consumed. Raises Unreachable when the worker dies in the middle."""
        while True:
            body, self._body = self._body, []
            for piece in body:
                yield piece
            if self._is_over:
                return
            try:
                await self._feed()
            except OSError as gone:
                raise self._died() from gone

    async def _feed(self) -> None:
        data = await self._reader.read(_READ_SIZE)
        if not data:
            raise self._died()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as broken:
            raise self._died() from broken
        if self._has_head:
            self.status = self._parser.get_status_code()

    # Called by the parser.

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self._has_head = True

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        self._is_over = True


def _died() -> Unreachable:
    return Unreachable("the MCP worker died over this request", next="try again; processes that it started go on")


async def whole_events(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes, cut between events. An event that is incomplete when the stream fails is dropped."""
    held = bytearray()
    async for piece in pieces:
        begin = max(0, len(held) - len(_EVENT_ENDS[0]) + 1)
        held += piece
        if end := max(_end(held, mark, begin) for mark in _EVENT_ENDS):
            yield bytes(held[:end])
            del held[:end]
    if held:
        yield bytes(held)


def _end(held: bytearray, mark: bytes, begin: int) -> int:
    found = held.rfind(mark, begin)
    return found + len(mark) if found >= 0 else 0


def _closing_event(request: bytes) -> bytes:
    """The last event of a response whose worker died: an error; empty where the request expects no reply."""
    number = _request_id(request)
    if number is None:
        return b""
    error = {"jsonrpc": "2.0", "id": number, "error": {"code": _INTERNAL_ERROR, "message": _DIED}}
    return b"event: message\r\ndata: " + json.dumps(error).encode() + b"\r\n\r\n"


def _request_id(request: bytes) -> int | str | None:
    try:
        found = json.loads(request)
    except (ValueError, RecursionError):
        return None
    number = found.get("id") if isinstance(found, dict) and "method" in found else None
    return number if isinstance(number, (int, str)) and not isinstance(number, bool) else None


def _route(method: str, name: str, summary: str) -> Route:
    return Route(
        method, "/mcp", name, summary, {200: Success("As the protocol defines", {})}, serve=serve, is_described=False
    )


ROUTES = [
    _route("POST", "mcpSend", "A message of the Model Context Protocol"),
    _route("GET", "mcpListen", "Messages that the server sends by itself"),
    _route("DELETE", "mcpEnd", "The end of a protocol session"),
]
