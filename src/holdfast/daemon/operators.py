"""Callers that are not bound to a session may act on all processes; acts on those of other sessions are audited."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from holdfast.daemon import audit, values
from holdfast.daemon.room import Call, Message, Room
from holdfast.errors import HoldfastError
from holdfast.model.process import Process

#: These change something about a process, or about all of a session.
_ACTS = frozenset({"kill", "send", "restart", "remove", "transfer", "resize", "end_session", "rename_session"})
#: These come many times a second.
_OFTEN = frozenset({"send", "resize"})
_MOST_NAMED = 100


def note(room: Room, call: Call, op: str, ask: Message) -> asyncio.Future[None] | None:
    """Begin to audit an act on another session's processes; None where it is none."""
    if op not in _ACTS:
        return None
    foreign = [process for process in _targets(room, op, ask) if process.meta.session != call.owner]
    if not foreign:
        return None
    ids, sessions = [process.id for process in foreign], sorted({process.meta.session for process in foreign})
    if op in _OFTEN and not room.audit.is_new(op, call.owner, *ids):
        return None
    entry = audit.entry(f"operator.{op}", by=call.owner, processes=ids[:_MOST_NAMED], sessions=sessions[:_MOST_NAMED])
    return asyncio.ensure_future(room.store.change(entry))


def _targets(room: Room, op: str, ask: Message) -> Iterable[Process]:
    """The processes that the request names; invalid arguments are refused by the handler."""
    try:
        if op in ("end_session", "rename_session"):
            return _of(room, room.session(ask, "session" if op == "end_session" else "from"))
        if ask.get("process") is not None:
            return [room.registry.identify(values.needed_text(ask, "process", 4096))]
        if ask.get("processes") is not None:
            return [room.registry.identify(name) for name in values.texts(ask, "processes", 10_000) or ()]
        if op == "kill":
            return _killed(room, ask)
    except HoldfastError:
        return []
    return []


def _killed(room: Room, ask: Message) -> list[Process]:
    session, task, everyone = room.session(ask), values.session(ask, "task"), values.flag(ask, "all")
    living = room.registry.living.values()
    return [
        process
        for process in living
        if everyone or process.meta.session == session or (task is not None and process.meta.task == task)
    ]


def _of(room: Room, session: str | None) -> list[Process]:
    return [process for process in room.registry.living.values() if process.meta.session == session]
