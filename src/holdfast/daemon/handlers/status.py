"""status: the daemon about itself."""

from __future__ import annotations

import asyncio
import os

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.errors import Unreachable
from holdfast.ops.daemon import Status
from holdfast.places.keeper_link import Refused
from holdfast.version import VERSION

_KEEPER_BUDGET = 1.0


async def handle(context: DaemonContext, call: Call, ask: Status) -> Message:
    ids = {process.id for process in context.registry.running()}
    running = len(ids)
    usage = await _usage(context)
    return {
        "pid": os.getpid(),
        "keeper_pid": context.keeper.about.get("pid"),
        "anchor_pid": context.keeper.about.get("anchor_pid"),
        "version": VERSION,
        "home": context.paths.home,
        "socket": context.paths.socket,
        "started_at": context.started_at,
        "processes": running,
        "held": len(ids & set(context.place.fd_store.held)),
        "ended": len(context.registry.shown()) - running,
        "log_bytes": usage.get("log_bytes"),
        "log_total": usage.get("log_total"),
        "events": context.stream.newest,
        "bridges": context.bridges.connected,
        "ignored_frames": context.bridges.ignored,
        "cgroup": context.keeper.about.get("cgroup"),
    }


async def _usage(context: DaemonContext) -> Message:
    """What the keeper says; nothing when it does not answer at once."""
    try:
        async with asyncio.timeout(_KEEPER_BUDGET):
            return await context.keeper.request("usage")
    except (Refused, Unreachable, TimeoutError):
        return {}
