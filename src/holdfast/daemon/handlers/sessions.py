"""sessions: those that have processes, or had some that are still remembered, or are yet to be told something."""

from __future__ import annotations

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.ops.sessions import Sessions


async def handle(context: DaemonContext, call: Call, ask: Sessions) -> Message:
    """The one that started something last comes last."""
    pending = context.inbox.counts()
    found: dict[str, Message] = {session: _unknown(session) for session in pending if call.sees(session)}
    seen = [process for process in context.registry.shown() if call.sees(process.meta.session)]
    for process in sorted(seen, key=lambda process: process.meta.requested_at):
        told = found.pop(process.meta.session, None) or _unknown(process.meta.session)
        told["ended" if process.has_ended else "running"] += 1
        told["first_at"] = told["first_at"] or process.meta.requested_at
        told["last_at"] = process.meta.requested_at
        found[process.meta.session] = told
    return {"sessions": [{**told, "pending": pending.get(session, 0)} for session, told in found.items()]}


def _unknown(session: str) -> Message:
    return {"session": session, "running": 0, "ended": 0, "first_at": None, "last_at": None}
