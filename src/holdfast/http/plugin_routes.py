"""/api/plugins/NAME/…: the routers of plugins, each in a process of its own.

The daemon has checked the client. The router gets no cookie, token or secret, and its answers set no cookies.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING

from holdfast.daemon.workers.plugins import PluginWorker
from holdfast.errors import Denied, NotFound, Unreachable
from holdfast.http.request import HttpRequest
from holdfast.http.responses import ClientGone, Headers, HttpRefusal, Response, Send, encoded_headers
from holdfast.http.routes.mcp import WorkerExchange
from holdfast.http.routing import MOST_BODY
from holdfast.http.websocket import RESTARTING, WebSocket

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

PREFIX = "/api/plugins/"
#: Codes of a closed WebSocket that may be passed on, beside those of applications.
_CLOSE_CODES = frozenset({1000, 1001, 1002, 1003, *range(1007, 1015)})
_FAILED = 1011
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
    if request.method not in _METHODS:
        raise HttpRefusal(405, "unsupported", f"{request.method[:20]} is not allowed here", next="GET")
    worker, target = await _find(request)
    return await _forward(request, worker, target, await request.body())


async def serve_socket(request: HttpRequest, socket: WebSocket) -> None:
    """Pass messages on in both directions, no faster than the other side takes them. Raises as `serve`, and NotNow."""
    from websockets.exceptions import InvalidHandshake, InvalidStatus

    worker, target = await _find(request)
    limit = request.context.plugin_routers.timeout
    async with worker.socket_connection() as connection:
        try:
            link = await _open(connection, target, _headers(request)[1:], limit)
        except TimeoutError:
            raise _gave_no_answer(worker, limit) from None
        except InvalidStatus as refused:
            status = refused.response.status_code
            raise HttpRefusal(
                status if 400 <= status < 600 else 502,
                "denied",
                "the plugin does not take this WebSocket",
                next="see its documentation",
            ) from None
        except (InvalidHandshake, OSError, EOFError) as gone:
            raise _died(worker) from gone
        try:
            worker.answered()
            await socket.accept()
            await _relay(request, socket, link)
        finally:
            await _close(link, worker)


async def _find(request: HttpRequest) -> tuple[PluginWorker, str]:
    """The worker of the plugin that the path names, and the target of the request there."""
    name, _, path = request.raw_path.removeprefix(PREFIX).partition("/")
    if request.is_read_only:
        raise Denied("this page can only look", next="open a page that can do more: holdfast dashboard")
    if request.call().is_strict:
        raise Denied("a connection that is bound to its session uses no plugins", next="ask the user")
    plugin = await asyncio.to_thread(request.context.plugins.get, name)
    if not plugin.is_enabled or plugin.api is None:
        raise NotFound(f"there is no router of a plugin {plugin.name}", next="holdfast dashboard plugins")
    worker = await request.context.plugin_routers.of(plugin)
    query = request.scope["query_string"].decode("latin-1")
    return worker, f"/{path}?{query}" if query else f"/{path}"


async def _open(connection: socket.socket, target: str, headers: Headers, limit: float) -> ClientConnection:
    """A WebSocket to the worker. It is cut when the worker does not react for `limit` seconds."""
    from websockets.asyncio.client import connect

    return await connect(
        f"ws://localhost{target}",
        sock=connection,
        additional_headers=[pair for pair in headers if not pair[0].startswith("sec-websocket-")],
        compression=None,
        max_size=MOST_BODY,
        open_timeout=limit,
        ping_interval=limit,
        ping_timeout=limit,
        close_timeout=1.0,
    )


async def _relay(request: HttpRequest, socket: WebSocket, link: ClientConnection) -> None:
    """Until one side closes, or the daemon stops."""
    sends, gets = asyncio.ensure_future(_to_plugin(socket, link)), asyncio.ensure_future(_to_client(socket, link))
    try:
        await asyncio.wait({sends, gets, request.stopping}, return_when=asyncio.FIRST_COMPLETED)
        if sends.done() and isinstance(sends.exception(), ClientGone):
            return
        code = link.close_code
        is_valid = code is not None and (code in _CLOSE_CODES or 3000 <= code <= 4999)
        await socket.close(RESTARTING if request.stopping.done() else code if is_valid and code else _FAILED)
    finally:
        for task in (sends, gets):
            task.cancel()
        await asyncio.wait({sends, gets})


async def _to_plugin(socket: WebSocket, link: ClientConnection) -> None:
    from websockets.exceptions import ConnectionClosed

    with suppress(ConnectionClosed):
        while True:
            await link.send(await socket.receive_any())
    await link.wait_closed()


async def _to_client(socket: WebSocket, link: ClientConnection) -> None:
    from websockets.exceptions import ConnectionClosed

    with suppress(ConnectionClosed):
        async for message in link:
            await socket.send_any(message)
    await link.wait_closed()


async def _close(link: ClientConnection, worker: PluginWorker) -> None:
    """A worker that did not react to pings hangs; one that closed the connection in another way has died."""
    sent, received = link.protocol.close_sent, link.protocol.close_rcvd
    if received is None and sent is not None and sent.code == _FAILED:
        worker.hangs()
    elif received is None and sent is None and link.close_code is not None:
        worker.failed()
    await link.close()


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
        raise _gave_no_answer(worker, limit) from None
    except BaseException:
        await stack.aclose()
        raise
    worker.answered()
    return _Forwarded(request, exchange, stack)


def _gave_no_answer(worker: PluginWorker, limit: float) -> HttpRefusal:
    worker.hangs()
    what = f"the router of the {worker.name} gave no answer within {limit:g} s, and was ended"
    return HttpRefusal(504, "unreachable", what, next="try again; its author has to correct it")


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
