"""inspect: one process."""

from __future__ import annotations

from holdfast.daemon import values, version
from holdfast.daemon.room import Call, Message, Room


async def handle(room: Room, call: Call, ask: Message) -> Message:
    process = room.registry.identify(values.needed_text(ask, "process", 4096))
    (shown,) = await room.show_fresh([process])
    token = version.of(shown)
    if values.text(ask, "seen", 100) == token:
        return {"unchanged": True}
    return {"process": shown, "seen": token}
