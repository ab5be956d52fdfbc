"""remove: forget ended processes."""

from __future__ import annotations

from holdfast.daemon import values
from holdfast.daemon.forgetting import forget
from holdfast.daemon.room import Call, Message, Room
from holdfast.errors import BadValue, NotNow

_MOST = 10_000


async def handle(room: Room, call: Call, ask: Message) -> Message:
    """All or none as far as it can be known beforehand: a running process among them refuses the whole."""
    names = values.texts(ask, "processes", _MOST)
    if not names:
        raise BadValue("remove which process?", next="holdfast ps -a")
    processes = {process.id: process for process in map(room.registry.identify, names)}
    for process in processes.values():
        if not process.has_ended:
            raise NotNow(f"{process.id} still runs", next=f"holdfast kill {process.id}")
    for process_id in processes:
        await forget(room, process_id)
    return {"removed": list(processes)}
