"""HTTP in a worker process, on connections that the daemon passes to it."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from holdfast.wire.worker import WorkerLink


async def serve_http(link: WorkerLink, app: Any) -> None:
    """Serve an ASGI application until the daemon closes the link."""
    config = Config(app, http=HttpToolsProtocol, ws="none", lifespan="off", log_config=None, access_log=False)
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
