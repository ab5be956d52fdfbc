"""attached: somebody's own terminal shows what a process writes, for as long as this request lasts."""

from __future__ import annotations

from holdfast.daemon import values
from holdfast.daemon.room import Call, Message, Room
from holdfast.errors import NoTerminal


async def handle(room: Room, call: Call, ask: Message) -> Message:
    """Until the process ends. Given up, or with its connection, it counts as detached."""
    process = room.registry.identify(values.needed_text(ask, "process", 4096))
    offset = values.integer(ask, "from", 0)
    if not process.meta.pty:
        raise NoTerminal(f"{process.id} has no terminal")
    async with room.screens.attach(process, offset):
        await room.registry.wait_ended(process.id)
    return {}
