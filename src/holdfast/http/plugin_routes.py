"""/api/plugins/NAME/…: the routers of plugins, each in a process of its own.

The daemon has checked the client. The router gets no cookie, token or secret, and its answers set no cookies.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial

from holdfast.daemon.workers.plugins import PluginWorker
from holdfast.errors import Denied, NotFound, Unreachable
from holdfast.http.request import HttpRequest
from holdfast.http.responses import Headers, HttpRefusal, Response, Send, encoded_headers
from holdfast.http.routes.mcp import WorkerExchange

PREFIX = "/api/plugins/"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
#: What the router does not get: who the client is to the daemon, and what belongs to the connection.
_KEPT_BACK = frozenset(
    {"cookie", "authorization", "holdfast-secret", "host", "connection", "content-length", "transfer-encoding"}
    | {"keep-alive", "te", "trailer", "upgrade", "expect", "proxy-authorization", "sec-websocket-protocol"}
)
_RETURNED = frozenset(
    {"content-type", "content-disposition", "content-encoding", "content-language", "cache-control"}
    | {"etag", "last-modified", "vary", "allow", "retry-after"}
)


async def serve(request: HttpRequest) -> Response:
    """Raises NotFound, Denied, Unreachable, HttpRefusal."""
    name, _, path = request.raw_path.removeprefix(PREFIX).partition("/")
    if request.is_read_only:
        raise Denied("this page can only look", next="open a page that can do more: holdfast dashboard")
    if request.call().is_strict:
        raise Denied("a connection that is bound to its session uses no plugins", next="ask the user")
    if request.method not in _METHODS:
        raise HttpRefusal(405, "unsupported", f"{request.method[:20]} is not allowed here", next="GET")
    plugin = await asyncio.to_thread(request.context.plugins.get, name)
    if not plugin.is_enabled or plugin.api is None:
        raise NotFound(f"there is no router of a plugin {plugin.name}", next="holdfast dashboard plugins")
    worker = await request.context.plugin_routers.of(plugin)
    query = request.scope["query_string"].decode("latin-1")
    target = f"/{path}?{query}" if query else f"/{path}"
    return await _forward(request, worker, target, await request.body())


async def _forward(request: HttpRequest, worker: PluginWorker, target: str, body: bytes) -> Response:
    method = "GET" if request.method == "HEAD" else request.method
    limit = request.context.plugin_routers.timeout
    stack = AsyncExitStack()
    try:
        async with asyncio.timeout(limit):
            connection = await stack.enter_async_context(worker.connection())
            exchange = WorkerExchange(*connection, partial(_died, worker))
            await request.while_connected(exchange.begin(method, target, _headers(request), body))
    except TimeoutError:
        await stack.aclose()
        worker.hangs()
        what = f"the router of the {worker.name} gave no answer within {limit:g} s, and was ended"
        raise HttpRefusal(504, "unreachable", what, next="try again; its author has to correct it") from None
    except BaseException:
        await stack.aclose()
        raise
    worker.answered()
    return _Forwarded(request, exchange, stack)


def _died(worker: PluginWorker) -> Unreachable:
    worker.failed()
    return Unreachable(f"the router of the {worker.name} died over this request", next="see daemon.log")


def _headers(request: HttpRequest) -> Headers:
    sent = [("host", "localhost")]
    for name, values in request.headers.items():
        if name not in _KEPT_BACK:
            sent += [(name, value) for value in values]
    return sent


class _Forwarded(Response):
    """The answer of the router, as it comes."""

    def __init__(self, request: HttpRequest, exchange: WorkerExchange, stack: AsyncExitStack) -> None:
        returned = [pair for pair in exchange.headers if pair[0] in _RETURNED]
        super().__init__(exchange.status, headers=returned)
        self._request = request
        self._pieces: AsyncIterator[bytes] = exchange.pieces()
        self._stack = stack

    async def send(self, send: Send) -> None:
        async with self._stack:
            headers = encoded_headers("", self.headers)
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            await self._request.while_connected(self._send_pieces(send))
            await send({"type": "http.response.body", "body": b""})

    async def _send_pieces(self, send: Send) -> None:
        async for piece in self._pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
