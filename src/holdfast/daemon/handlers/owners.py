"""transfer, rename_session: who owns what."""

from __future__ import annotations

from holdfast.daemon.core.context import Call, Message, Room
from holdfast.errors import BadValue
from holdfast.ops.processes import Transfer
from holdfast.ops.sessions import RenameSession


async def transfer(room: Room, call: Call, ask: Transfer) -> Message:
    """Hand a process, and what is still to be told of it, to another session."""
    process = room.registry.identify(ask.process)
    if ask.to is None:
        raise BadValue("transfer it to which session?", next="holdfast transfer ID SESSION")
    notices = await room.sessions.hand_over([process.id], ask.to)
    now = room.registry.get(process.id) or process
    return {"process": room.show(now), "notifications": notices}


async def rename(room: Room, call: Call, ask: RenameSession) -> Message:
    """Give a session another name: processes, notices, and whatever still comes under the old one."""
    old, new = ask.from_, ask.to
    if old is None or new is None:
        raise BadValue("rename which session, and how?", next="holdfast session rename OLD NEW")
    if old == new:
        raise BadValue("that is its name already")
    processes, notices = await room.sessions.rename(old, new)
    return {"processes": [process.id for process in processes], "notifications": notices}
