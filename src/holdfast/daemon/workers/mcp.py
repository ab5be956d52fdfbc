"""The MCP worker: `python -m holdfast.mcp`, which speaks the Model Context Protocol for `/mcp`.

Each HTTP request gets a connection of its own. The daemon passes one end of it to the worker, so only requests that the
daemon has let in reach it.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
from collections.abc import AsyncIterator, Mapping
from typing import TypeAlias

from holdfast.daemon.workers.worker import Worker, WorkerLaunch
from holdfast.errors import Unreachable, Unsupported
from holdfast.extras import install_hint

Connection: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_TRIES = 3
#: With these the worker would speak to another daemon than the one that started it.
_ELSEWHERE = ("HOLDFAST_URL", "HOLDFAST_TOKEN")


class McpWorker(Worker):
    name = "mcp"
    is_serial = False
    has_own_session = True
    #: Longer than a client's session lasts without a request.
    idle_timeout = 3600.0

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__({name: value for name, value in environ.items() if name not in _ELSEWHERE})
        home = environ.get("HOME") or "/"
        self.cwd = home if os.path.isdir(home) else "/"  # where sessions begin

    def launch(self) -> WorkerLaunch:
        if importlib.util.find_spec("mcp") is None:
            raise Unsupported("the MCP SDK is not installed", next=install_hint("mcp"))
        return WorkerLaunch(("-P", "-m", "holdfast.mcp"))

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection to the worker, for one request. Raises Unsupported without the SDK, Unreachable."""
        with self.in_use():
            reader, writer = await self._connected()
            try:
                yield reader, writer
            finally:
                writer.close()

    async def _connected(self) -> Connection:
        for _ in range(_TRIES):
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(sock=await self.connect())
        raise Unreachable("the MCP worker does not stay up", next="try again; holdfast doctor")
