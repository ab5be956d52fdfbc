"""`holdfast mcp`: one client, on stdin and stdout. It ends with its client, and leaves background processes."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any, cast

from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from holdfast.client import caller
from holdfast.mcp.calling import Calls
from holdfast.mcp.conversations import finder
from holdfast.mcp.lines import StdinLines
from holdfast.mcp.live import OneLive
from holdfast.mcp.pool import Pool
from holdfast.mcp.server import HoldfastServer

#: What was under way when the client went is ended within this time, or goes on in the background.
_SETTLE = 0.7


async def serve(
    session: str | None, call_limit: float | None, is_channel: bool = False, client: str | None = None
) -> None:
    """Until the client closes stdin, or SIGTERM or SIGINT. A `client` that is known has sessions of its own."""
    pool = Pool(caller.directory()[0])
    live = OneLive(is_channel)
    calls = Calls(pool, finder(client, session), live, call_limit, pushes=is_channel)
    await _until_over(_converse(HoldfastServer(calls, is_channel)))
    await _closed(pool, calls, live)
    os._exit(0)  # a thread may still be reading stdin, and nothing ends that


async def _converse(server: HoldfastServer) -> None:
    lines = StdinLines()
    async with stdio_server(stdin=cast(Any, lines)) as (reading, writing):
        lines.object_to = lambda error: writing.send(SessionMessage(error))
        await server.run(reading, writing, server.create_initialization_options())


async def _until_over(work: object) -> None:
    """Until the conversation is over. A thread that still reads stdin is not waited for."""
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    task = asyncio.ensure_future(work)  # type: ignore[call-overload]
    stopped = asyncio.ensure_future(over.wait())
    await asyncio.wait([task, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if task.done():
        task.result()


async def _closed(pool: Pool, calls: Calls, live: OneLive) -> None:
    try:
        async with asyncio.timeout(_SETTLE):
            await live.close()
            await pool.close()
            await calls.settle(_SETTLE)
    except TimeoutError:
        pass
