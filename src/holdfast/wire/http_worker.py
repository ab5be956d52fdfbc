"""HTTP in a worker process, on connections that the daemon passes to it."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from holdfast.wire.worker import WorkerLink


async def serve_http(link: WorkerLink, app: Any, longest_message: int | None = None) -> None:
    """Serve an ASGI application until the daemon closes the link. WebSockets are served with `longest_message` only."""
    common: dict[str, Any] = {"http": HttpToolsProtocol, "lifespan": "off", "log_config": None, "access_log": False}
    if longest_message is None:
        config = Config(app, ws="none", **common)
    else:
        from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

        config = Config(
            app, ws=WebSocketsSansIOProtocol, ws_max_size=longest_message, ws_per_message_deflate=False, **common
        )
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    end: asyncio.Future[None] = loop.create_future()
    tasks: set[asyncio.Task[Any]] = set()

    def accept() -> None:
        try:
            connections = link.receive_connections()
        except EOFError:
            loop.remove_reader(link)
            end.set_result(None)
            return
        for connection in connections:
            work = loop.connect_accepted_socket(lambda: HttpToolsProtocol(config, state, {}), connection)
            task = loop.create_task(work)
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    loop.add_reader(link, accept)
    await end
