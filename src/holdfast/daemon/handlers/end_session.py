"""end_session: a session is over. What was to live as long as it ends; the rest is its parent's."""

from __future__ import annotations

import asyncio

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.ending import end
from holdfast.errors import BadValue
from holdfast.model.process_rules import end_with_session, parent_of
from holdfast.ops.sessions import EndSession


async def handle(context: DaemonContext, call: Call, ask: EndSession) -> Message:
    """When it is answered, what goes on is somebody's, on disk. Asking again does what is left to be done."""
    session = context.current_name(ask.session)
    if session is None:
        raise BadValue("end which session?")
    await context.approvals.end_session(session)
    context.passwords.forget(session)
    to = _heir(context, ask, session)
    ending, _ = end_with_session(context.registry.running(), session)
    results = await asyncio.gather(
        *(end(context, process, call.session, "session_end", context.settings.grace) for process in ending)
    )
    closed = await context.sessions.close(session, to, [process.id for process in ending])
    return {
        "results": results,
        "passed": [{"id": process_id, "to": to} for process_id in closed.passed],
        "left": closed.left,
        "notifications": closed.notices,
    }


def _heir(context: DaemonContext, ask: EndSession, session: str) -> str | None:
    """Who gets what goes on: the one that is named, else the parent; nobody where it is to be kept."""
    named, keep = context.current_name(ask.to), ask.keep
    if named is not None and keep:
        raise BadValue("either they pass to another session or they are kept, not both", next="leave `keep` out")
    if named == session:
        raise BadValue("a session that ends cannot keep its processes by itself", next="name another, or say keep")
    if named is not None or keep:
        return named
    parent = parent_of(context.registry.all.values(), session)
    heir = context.sessions.resolve(parent) if parent is not None else None
    return heir if heir != session else None
