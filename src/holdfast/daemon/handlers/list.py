"""list: the processes, running ones or all."""

from __future__ import annotations

from holdfast.daemon import values
from holdfast.daemon.room import Call, Message, Room


async def handle(room: Room, call: Call, ask: Message) -> Message:
    session, task = values.session(ask), values.session(ask, "task")
    processes = room.registry.shown() if values.flag(ask, "all") else room.registry.running()
    chosen = [
        process
        for process in processes
        if (session is None or process.meta.session == session) and (task is None or process.meta.task == task)
    ]
    chosen.sort(key=lambda process: process.meta.requested_at)
    return {"processes": await room.show_fresh(chosen, used=values.flag(ask, "used", True))}
