"""stop: end the daemon on purpose."""

from __future__ import annotations

import asyncio

from holdfast.daemon.core.context import Call, Message, Room
from holdfast.daemon.core.ending import end
from holdfast.model.process_rules import end_with_daemon
from holdfast.ops.daemon import Stop


async def handle(room: Room, call: Call, ask: Stop) -> Message:
    """Answers when everything that ends with the daemon has ended; the daemon itself goes after that."""
    answer = await end_of_daemon(room)
    room.stop_asked.set()
    return answer


async def end_of_daemon(room: Room) -> Message:
    ending, left = end_with_daemon(room.registry.running())
    await asyncio.gather(*(end(room, process, None, "daemon_stop", room.settings.grace) for process in ending))
    return {"ended": [process.id for process in ending], "left": [process.id for process in left]}
