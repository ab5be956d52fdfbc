"""Progress of a call that takes long: how long it has run, and its last line of output, every two seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.client.aio import AsyncClient
from holdfast.errors import HoldfastError
from holdfast.mcp.peers import Context
from holdfast.model.foreground_labels import is_foreground
from holdfast.model.units import duration_text
from holdfast.tools import output
from holdfast.tools.aio import find
from holdfast.tools.answers import uptime

if TYPE_CHECKING:
    from holdfast.client.process import Process

INTERVAL = 2.0
_WIDTH = 200


async def report(ctx: Context, session: str, name: str, given: Mapping[str, object]) -> None:
    """Until it is cancelled, also while nothing is known of the process."""
    begun = time.time()
    client = AsyncClient(session, strict=True)
    try:
        while True:
            await asyncio.sleep(INTERVAL)
            message = await _message(client, name, given, begun)
            await ctx.session.report_progress(round(time.time() - begun, 1), None, message)
    finally:
        await client.close()


async def _message(client: AsyncClient, name: str, given: Mapping[str, object], begun: float) -> str:
    try:
        process = await _process(client, name, given, begun)
        if process is not None:
            (line,) = await client.redact(await output.last_line(client, process.id))
            colon = ": " if line else ""
            return f"{process.status} for {duration_text(uptime(process))}{colon}{line[:_WIDTH]}"
    except HoldfastError:
        pass
    return f"waiting for {duration_text(time.time() - begun)}"


async def _process(client: AsyncClient, name: str, given: Mapping[str, object], begun: float) -> Process | None:
    """The command that the call runs, or the process that it waits for."""
    if name == "process":
        asked = given.get("session_id")
        return await find(client, str(asked).partition(",")[0].strip()) if asked else None
    running = await client.ps(session=client.session, used=False)
    mine = [one for one in running if is_foreground(one.labels, uptime(one)) and (one.started_at or 0.0) >= begun - 1.0]
    return max(mine, key=lambda one: one.started_at or 0.0, default=None)
