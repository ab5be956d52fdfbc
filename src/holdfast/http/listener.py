"""HTTP on connections that the daemon's listeners accepted: uvicorn's protocols on the daemon's own loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.listener.accepting import BoundOrigin
from holdfast.http.app import HttpApp
from holdfast.http.responses import PROBLEM_JSON, HttpRefusal, problem_bytes
from holdfast.http.routing import MOST_BODY

_KEEP_ALIVE = 60
_CLOSE_POLL_INTERVAL = 0.005
_MOST_HEAD = 64 << 10
#: From the first byte of a request to the end of its headers.
_HEAD_TIME = 10.0


class _HeadTooLong(Exception):
    pass


class BoundedProtocol(HttpToolsProtocol):
    """Refuses a head that is too long (431) or takes too long (408)."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._head_size = 0
        self._head_timer: asyncio.TimerHandle | None = None
        #: Size of the head that is being read: its target and fields, in however many pieces they came.
        self._head_read = 0

    def data_received(self, data: bytes) -> None:
        if self._expects_head():
            self._head_size += len(data)
            if self._head_timer is None:
                self._head_timer = self.loop.call_later(_HEAD_TIME, self._too_slow)
        super().data_received(data)
        if self._head_size > _MOST_HEAD and self._expects_head() and not self.transport.is_closing():
            self._refuse(431, "the headers are too long")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_reading_head = True
        self._head_read = 0

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(b": ") + len(value) + len(b"\r\n"))
        super().on_header(name, value)

    def _count(self, size: int) -> None:
        """Ends the parsing of a head that is too long and came in one piece."""
        self._head_read += size
        if self._head_read > _MOST_HEAD:
            raise _HeadTooLong

    def on_headers_complete(self) -> None:
        self._is_reading_head = False
        self._head_size = 0
        self._stop_timer()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        if self._head_read > _MOST_HEAD:
            self._refuse(431, "the headers are too long")
        else:
            self._refuse(400, "this is no HTTP request")

    _is_reading_head = True

    def _expects_head(self) -> bool:
        """Whether the next bytes belong to a head."""
        return self._is_reading_head or (self._is_idle() and not self.pipeline)

    def _is_idle(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def _too_slow(self) -> None:
        self._head_timer = None
        self._refuse(408, "the headers took too long")

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, status: int, why: str) -> None:
        self._stop_timer()
        if self.transport.is_closing():
            return
        if self._is_idle():
            body = problem_bytes(HttpRefusal(status, "bad_value", why, next="see docs/http.md"))
            head = b"content-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % (
                PROBLEM_JSON.encode(),
                len(body),
            )
            self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()


class HttpListener:
    def __init__(self, context: DaemonContext) -> None:
        for name in ("uvicorn.error", "uvicorn.access"):  # the daemon has its own log
            logging.getLogger(name).addHandler(logging.NullHandler())
            logging.getLogger(name).propagate = False
        self._app = HttpApp(context)
        self._state = ServerState()
        self._config = Config(
            self._app,
            http=BoundedProtocol,
            ws=WebSocketsSansIOProtocol,
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            ws_max_size=MOST_BODY,
            ws_per_message_deflate=False,
            timeout_keep_alive=_KEEP_ALIVE,
        )
        self._config.load()

    def protocol(
        self, transport: asyncio.Transport, origin: BoundOrigin | None, has_token: Callable[[], None] | None
    ) -> asyncio.Protocol:
        """A protocol that takes a connection over. On TCP there is no origin, because the token decides: `has_token` is
        called when the client has sent it.
        """
        state = {"tcp": has_token is not None, "origin": origin, "has_token": has_token, "abort": transport.abort}
        return BoundedProtocol(self._config, self._state, state)

    async def close(self) -> None:
        """Accept no more requests, end those that wait or stream, and send responses that are nearly done."""
        if not self._app.stopping.done():
            self._app.stopping.set_result(None)
        await asyncio.sleep(0)
        for connection in list(self._state.connections):
            connection.shutdown()
        while self._state.tasks:
            await asyncio.wait(list(self._state.tasks))
        while self._state.connections:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(_CLOSE_POLL_INTERVAL)

    def abort(self) -> None:
        """Close all connections at once."""
        for task in list(self._state.tasks):
            task.cancel()
        for connection in list(self._state.connections):
            connection.transport.abort()
