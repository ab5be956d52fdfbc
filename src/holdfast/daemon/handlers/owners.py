"""transfer, rename_session: who owns what."""

from __future__ import annotations

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.errors import BadValue
from holdfast.ops.processes import Transfer
from holdfast.ops.sessions import RenameSession


async def transfer(context: DaemonContext, call: Call, ask: Transfer) -> Message:
    """Hand a process, and what is still to be told of it, to another session."""
    process = context.registry.identify(ask.process)
    if ask.to is None:
        raise BadValue("transfer it to which session?", next="holdfast transfer ID SESSION")
    notices = await context.sessions.hand_over([process.id], ask.to)
    now = context.registry.get(process.id) or process
    return {"process": context.show(now), "notifications": notices}


async def rename(context: DaemonContext, call: Call, ask: RenameSession) -> Message:
    """Give a session another name: processes, notices, and whatever still comes under the old one."""
    old, new = ask.from_, ask.to
    if old is None or new is None:
        raise BadValue("rename which session, and how?", next="holdfast session rename OLD NEW")
    if old == new:
        raise BadValue("that is its name already")
    processes, notices = await context.sessions.rename(old, new)
    return {"processes": [process.id for process in processes], "notifications": notices}
