"""/mcp: the Model Context Protocol over HTTP. Whoever was let in is passed on to the worker that speaks it."""

from __future__ import annotations

from contextlib import AsyncExitStack

from holdfast.errors import Unreachable
from holdfast.http import mcp_events
from holdfast.http.answers import Answer, Send, encoded
from holdfast.http.forward import Exchange
from holdfast.http.problems import Refusal
from holdfast.http.request import Request
from holdfast.http.table import Reply, Route

#: What the worker has to know of a request, and the client of the answer; besides all that begins with `mcp-`.
_THERE = frozenset({"accept", "content-type", "last-event-id"})
_ALLOW = "DELETE, GET, OPTIONS, POST"
_BACK = frozenset({"content-type", "allow", "retry-after"})


async def serve(request: Request) -> Answer:
    if request.method == "HEAD":
        raise Refusal(405, "unsupported", "HEAD cannot be done here", next=_ALLOW, headers=(("allow", _ALLOW),))
    body = await request.body() if request.method == "POST" else b""
    stack = AsyncExitStack()
    try:
        exchange = Exchange(*await stack.enter_async_context(request.room.mcp.connection()))
        await request.while_there(exchange.begin(request.method, "/mcp", _headers(request), body))
        if not _is_events(exchange):
            return await _whole(request, exchange, stack)
    except BaseException:
        await stack.aclose()
        raise
    return _Passed(request, exchange, stack, body)


def _headers(request: Request) -> list[tuple[str, str]]:
    """What is passed on. Who comes from within a judged command speaks for its session, and cannot approve."""
    call = request.call()
    passed = [("host", "localhost")]
    for name, values in request.headers.items():
        if name in _THERE or name.startswith("mcp-"):
            passed.append((name, ", ".join(values)))
    if call.session is not None:
        passed.append(("holdfast-session", call.session.encode().decode("latin-1")))
    if call.is_gated:
        passed.append(("holdfast-gated", "true"))
    return passed


def _is_events(exchange: Exchange) -> bool:
    return dict(exchange.headers).get("content-type", "").startswith("text/event-stream")


def _passed_back(exchange: Exchange) -> list[tuple[str, str]]:
    return [pair for pair in exchange.headers if pair[0] in _BACK or pair[0].startswith("mcp-")]


async def _whole(request: Request, exchange: Exchange, stack: AsyncExitStack) -> Answer:
    """An answer that is sent when all of it is there. Raises Unreachable when the worker dies over it."""

    async def read() -> bytes:
        return b"".join([piece async for piece in exchange.pieces()])

    async with stack:
        body = await request.while_there(read())
    return Answer(exchange.status, body, headers=_passed_back(exchange))


class _Passed(Answer):
    """The worker's events, for as long as both are there. Those that it does not live to end are ended for it."""

    def __init__(self, request: Request, exchange: Exchange, stack: AsyncExitStack, body: bytes) -> None:
        super().__init__(exchange.status, headers=_passed_back(exchange))
        self._request = request
        self._exchange = exchange
        self._stack = stack
        self._asked = body

    async def send(self, send: Send) -> None:
        async with self._stack:
            await send({"type": "http.response.start", "status": self.status, "headers": encoded("", self.headers)})
            await self._request.while_there(self._pass_on(send))
            await send({"type": "http.response.body", "body": b""})

    async def _pass_on(self, send: Send) -> None:
        try:
            async for events in mcp_events.whole(self._exchange.pieces()):
                await send({"type": "http.response.body", "body": events, "more_body": True})
        except Unreachable:
            last = mcp_events.cut_off(self._asked)
            await send({"type": "http.response.body", "body": last, "more_body": True})


def _route(method: str, name: str, summary: str) -> Route:
    return Route(
        method, "/mcp", name, summary, {200: Reply("As the protocol says", {})}, serve=serve, is_described=False
    )


ROUTES = [
    _route("POST", "mcpSend", "A message of the Model Context Protocol"),
    _route("GET", "mcpListen", "What the server has to say by itself"),
    _route("DELETE", "mcpEnd", "The end of a protocol session"),
]
