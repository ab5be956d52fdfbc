"""/mcp: the Model Context Protocol over HTTP. Whoever was let in is passed on to the worker that speaks it."""

from __future__ import annotations

from contextlib import AsyncExitStack

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
    except BaseException:
        await stack.aclose()
        raise
    return _Passed(request, exchange, stack)


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


class _Passed(Answer):
    """The worker's answer, piece by piece, for as long as both are there."""

    def __init__(self, request: Request, exchange: Exchange, stack: AsyncExitStack) -> None:
        passed = [pair for pair in exchange.headers if pair[0] in _BACK or pair[0].startswith("mcp-")]
        super().__init__(exchange.status, headers=passed)
        self._request = request
        self._exchange = exchange
        self._stack = stack

    async def send(self, send: Send) -> None:
        async with self._stack:
            await send({"type": "http.response.start", "status": self.status, "headers": encoded("", self.headers)})
            await self._request.while_there(self._pass_on(send))
            await send({"type": "http.response.body", "body": b""})

    async def _pass_on(self, send: Send) -> None:
        async for piece in self._exchange.pieces():
            await send({"type": "http.response.body", "body": piece, "more_body": True})


def _route(method: str, name: str, summary: str) -> Route:
    return Route(
        method, "/mcp", name, summary, {200: Reply("As the protocol says", {})}, serve=serve, is_described=False
    )


ROUTES = [
    _route("POST", "mcpSend", "A message of the Model Context Protocol"),
    _route("GET", "mcpListen", "What the server has to say by itself"),
    _route("DELETE", "mcpEnd", "The end of a protocol session"),
]
