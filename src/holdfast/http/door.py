"""HTTP on connections that others have accepted: uvicorn's protocols on the daemon's own loop."""

from __future__ import annotations

import asyncio
import logging

from uvicorn.config import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from holdfast.daemon.room import Room
from holdfast.http.app import App
from holdfast.http.protocol import BoundedProtocol
from holdfast.http.request import MOST_BODY

_KEEP_ALIVE = 60
_PAUSE = 0.005


class HttpDoor:
    def __init__(self, room: Room) -> None:
        for name in ("uvicorn.error", "uvicorn.access"):  # what matters is in the daemon's own log
            logging.getLogger(name).addHandler(logging.NullHandler())
            logging.getLogger(name).propagate = False
        self._app = App(room)
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

    def protocol(self, tcp: bool, pid: int | None = None) -> asyncio.Protocol:
        """One that takes a connection from here on; `pid` made it, where that is known."""
        return BoundedProtocol(self._config, self._state, {"tcp": tcp, "pid": pid})

    async def close(self) -> None:
        """Take no more requests; end what waits or streams, and let answers that are nearly there go out."""
        if not self._app.stopping.done():
            self._app.stopping.set_result(None)
        await asyncio.sleep(0)
        for connection in list(self._state.connections):
            connection.shutdown()
        while self._state.tasks:
            await asyncio.wait(list(self._state.tasks))
        while self._state.connections:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(_PAUSE)

    def abort(self) -> None:
        """Hang up, whatever is left to say."""
        for task in list(self._state.tasks):
            task.cancel()
        for connection in list(self._state.connections):
            connection.transport.abort()
