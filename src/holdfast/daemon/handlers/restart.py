"""restart: run a process again, with the same spec and the same id."""

from __future__ import annotations

from holdfast.daemon import commands, restarting, values
from holdfast.daemon.room import Call, Message, Room

_LONGEST_GRACE = 86400.0
_MOST_RUNS = 1 << 40


async def handle(room: Room, call: Call, ask: Message) -> Message:
    """Answers when it runs again. With `run`, the same question again is the same restart."""
    process = room.registry.identify(values.needed_text(ask, "process", 4096))
    run, grace = values.integer(ask, "run", 1, _MOST_RUNS), values.seconds(ask, "grace")
    patience = room.settings.grace if grace is None else min(grace, _LONGEST_GRACE)
    async with commands.restarting(room, call, ask, process, run):
        process = await restarting.restart(room, process, call.session, run, patience)
    return {"process": room.show(process)}
