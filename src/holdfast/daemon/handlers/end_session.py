"""end_session: a session is over, and what was to live as long as it ends."""

from __future__ import annotations

import asyncio

from holdfast.daemon.ending import end
from holdfast.daemon.room import Call, Message, Room
from holdfast.errors import BadValue
from holdfast.model.lifetimes import end_with_session


async def handle(room: Room, call: Call, ask: Message) -> Message:
    session = room.session(ask)
    if session is None:
        raise BadValue("end which session?")
    await room.approvals.end_session(session)
    ending, left = end_with_session(room.registry.running(), session)
    results = await asyncio.gather(
        *(end(room, process, call.session, "session_end", room.settings.grace) for process in ending)
    )
    return {"results": results, "left": [process.id for process in left]}
