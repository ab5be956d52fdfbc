"""sessions: those that have processes, or had some that are still remembered."""

from __future__ import annotations

from holdfast.daemon.room import Call, Message, Room


async def handle(room: Room, call: Call, ask: Message) -> Message:
    """The one that started something last comes last."""
    found: dict[str, Message] = {}
    seen = [process for process in room.registry.shown() if call.sees(process.meta.session)]
    for process in sorted(seen, key=lambda process: process.meta.requested_at):
        told = found.pop(process.meta.session, None)
        if told is None:
            told = {"session": process.meta.session, "running": 0, "ended": 0, "first_at": process.meta.requested_at}
        told["ended" if process.has_ended else "running"] += 1
        told["last_at"] = process.meta.requested_at
        found[process.meta.session] = told
    return {"sessions": list(found.values())}
