"""screen: what a person would see on the terminal of a process now."""

from __future__ import annotations

from holdfast.daemon.core.context import Call, Message, Room
from holdfast.errors import NoTerminal
from holdfast.ops.processes import Screen


async def handle(room: Room, call: Call, ask: Screen) -> Message:
    """The picture, how far the output was looked at for it, and whether some of it was left out."""
    process = room.registry.identify(ask.process)
    if not process.meta.pty:
        raise NoTerminal(f"{process.id} has no terminal", next=f"holdfast logs {process.id}")
    shown = await room.screens.show(process, ask.ansi)
    now = room.registry.get(process.id) or process
    return {
        "screen": {"id": process.id, **shown["picture"], "at": shown["at"], "gap": shown["gap"]},
        "process": room.show(now),
    }
