"""The worker for `/mcp`: many clients, on connections that the daemon passes to it. It ends with its input."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings

from holdfast.mcp.calls import Calls, ToolKey, tool_pool
from holdfast.mcp.peers import HttpPeers
from holdfast.mcp.push import push_of_connection
from holdfast.mcp.server import HoldfastServer
from holdfast.tools.aio import ToolPool
from holdfast.wire.http_worker import serve_http
from holdfast.wire.worker import WorkerLink

_MOST_BODY = 16 << 20
_MOST_SESSIONS = 1000
_SETTLE = 1.0


async def serve(link: WorkerLink) -> None:
    """Until the daemon closes the link."""
    for name in ("mcp", "uvicorn.error", "uvicorn.access"):  # what a client sends may hold secrets
        logging.getLogger(name).addHandler(logging.NullHandler())
        logging.getLogger(name).propagate = False
    pool = tool_pool(os.getcwd())
    calls = Calls(pool, HttpPeers(), push_of_connection)
    server = HoldfastServer(calls, is_channel=False)
    app = _app(server)
    async with server.session_manager.run():
        await serve_http(link, app)
    await _closed(pool, calls)
    os._exit(0)


def _app(server: Server[Any]) -> Any:
    """The daemon has checked who may connect."""
    return server.streamable_http_app(
        max_request_body_size=_MOST_BODY,
        max_sessions=_MOST_SESSIONS,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )


async def _closed(pool: ToolPool[ToolKey], calls: Calls) -> None:
    try:
        async with asyncio.timeout(_SETTLE):
            await pool.close()
            await calls.settle(_SETTLE)
    except TimeoutError:
        pass
