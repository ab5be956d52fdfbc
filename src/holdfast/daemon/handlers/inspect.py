"""inspect: one process."""

from __future__ import annotations

from holdfast.daemon import values
from holdfast.daemon.room import Call, Message, Room


async def handle(room: Room, call: Call, ask: Message) -> Message:
    process = room.registry.identify(values.needed_text(ask, "process", 4096))
    (shown,) = await room.show_fresh([process])
    return {"process": shown}
