"""Progress of a call that takes long: how long it has run, and the last line it wrote, every two seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError
from holdfast.mcp.clients import open_client
from holdfast.mcp.peers import Context
from holdfast.model.foreground import is_foreground
from holdfast.model.units import duration_text
from holdfast.tools import output
from holdfast.tools.context import uptime

if TYPE_CHECKING:
    from holdfast.client.aio import AsyncClient
    from holdfast.client.process import Process

INTERVAL = 2.0
_WIDTH = 200


def is_wanted(ctx: Context) -> bool:
    meta = (ctx.params or {}).get("_meta")
    return isinstance(meta, Mapping) and meta.get("progressToken") is not None


async def report(ctx: Context, session: str, name: str, given: Mapping[str, object]) -> None:
    """Until it is cancelled. That there is nothing to tell is no reason to be silent."""
    begun = time.time()
    async with open_client(session) as client:
        while True:
            await asyncio.sleep(INTERVAL)
            message = await _message(client, name, given, begun)
            await ctx.session.report_progress(round(time.time() - begun, 1), None, message)


async def _message(client: AsyncClient, name: str, given: Mapping[str, object], begun: float) -> str:
    try:
        process = await _found(client, name, given, begun)
        if process is None:
            return f"waiting for {duration_text(time.time() - begun)}"
        line = await _last_line(client, process)
    except HoldfastError:
        return f"waiting for {duration_text(time.time() - begun)}"
    return f"{process.status} for {duration_text(uptime(process))}{': ' if line else ''}{line}"


async def _found(client: AsyncClient, name: str, given: Mapping[str, object], begun: float) -> Process | None:
    """What the call is about: the command that it runs, or the process that it waits for."""
    if name == "process":
        asked = given.get("session_id")
        return await door.find(client, str(asked).partition(",")[0].strip()) if asked else None
    running = await client.ps(session=client.session, used=False)
    mine = [one for one in running if is_foreground(one.labels, uptime(one)) and (one.started_at or 0.0) >= begun - 1.0]
    return max(mine, key=lambda one: one.started_at or 0.0, default=None)


async def _last_line(client: AsyncClient, process: Process) -> str:
    shown = await reading.tail(client, process.id, 1000)
    lines = [line for line in shown.text.splitlines() if line.strip()]
    if not lines:
        return ""
    (masked,) = await door.masked(client, [lines[-1].strip()])
    return masked[:_WIDTH]
