"""list: the processes, running ones or all."""

from __future__ import annotations

from holdfast.daemon import values
from holdfast.daemon.room import Call, Message, Room

#: How old what they use may be, in seconds.
_USED = 1.0


async def handle(room: Room, call: Call, ask: Message) -> Message:
    session, task = values.session(ask), values.session(ask, "task")
    processes = room.registry.shown() if values.flag(ask, "all") else room.registry.running()
    chosen = [
        process
        for process in processes
        if (session is None or process.meta.session == session) and (task is None or process.meta.task == task)
    ]
    chosen.sort(key=lambda process: process.meta.requested_at)
    return {"processes": await room.show_fresh(chosen, used=_USED if values.flag(ask, "used", True) else None)}
