"""`holdfast mcp`: one client, on stdin and stdout. It ends with its client, and leaves background processes."""

from __future__ import annotations

import asyncio
import os
import signal

from mcp.server.stdio import stdio_server

from holdfast.client import caller
from holdfast.mcp.calling import Calls
from holdfast.mcp.conversations import finder
from holdfast.mcp.pool import Pool
from holdfast.mcp.server import build

#: What was under way when the client went is ended within this time, or goes on in the background.
_SETTLE = 0.7


async def serve(session: str | None, call_limit: float | None, client: str | None = None) -> None:
    """Until the client closes stdin, or SIGTERM or SIGINT. A `client` that is known has sessions of its own."""
    pool = Pool(caller.directory()[0])
    calls = Calls(pool, finder(client, session), call_limit)
    await _until_over(_converse(calls))
    await _closed(pool, calls)
    os._exit(0)  # a thread may still be reading stdin, and nothing ends that


async def _converse(calls: Calls) -> None:
    server = build(calls)
    async with stdio_server() as (reading, writing):
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


async def _closed(pool: Pool, calls: Calls) -> None:
    try:
        async with asyncio.timeout(_SETTLE):
            await pool.close()
            await calls.settle(_SETTLE)
    except TimeoutError:
        pass
