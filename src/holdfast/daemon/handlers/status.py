"""status: the daemon about itself."""

from __future__ import annotations

import asyncio
import os

from holdfast.daemon.core.context import Call, Message, Room
from holdfast.errors import Unreachable
from holdfast.ops.daemon import Status
from holdfast.places.keeper_link import Refused
from holdfast.version import VERSION

_KEEPER_BUDGET = 1.0


async def handle(room: Room, call: Call, ask: Status) -> Message:
    ids = {process.id for process in room.registry.running()}
    running = len(ids)
    usage = await _usage(room)
    return {
        "pid": os.getpid(),
        "keeper_pid": room.keeper.about.get("pid"),
        "anchor_pid": room.keeper.about.get("anchor_pid"),
        "version": VERSION,
        "home": room.paths.home,
        "socket": room.paths.socket,
        "started_at": room.started_at,
        "processes": running,
        "held": len(ids & set(room.place.fd_store.held)),
        "ended": len(room.registry.shown()) - running,
        "log_bytes": usage.get("log_bytes"),
        "log_total": usage.get("log_total"),
        "events": room.stream.newest,
        "bridges": room.relays.connected,
        "ignored_frames": room.relays.ignored,
        "cgroup": room.keeper.about.get("cgroup"),
    }


async def _usage(room: Room) -> Message:
    """What the keeper says; nothing when it does not answer at once."""
    try:
        async with asyncio.timeout(_KEEPER_BUDGET):
            return await room.keeper.request("usage")
    except (Refused, Unreachable, TimeoutError):
        return {}
