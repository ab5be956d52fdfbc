"""Connections that see their own session alone: what belongs to others is to them as if it were not there."""

from __future__ import annotations

import os
from collections.abc import Callable

from holdfast.daemon import values
from holdfast.daemon.room import Call, Message, Room
from holdfast.daemon.stream import Batch
from holdfast.errors import BadValue, Denied, NotFound
from holdfast.model.identify import identify
from holdfast.model.lifecycle import Requested
from holdfast.model.process import Process

Narrow = Callable[[Room, Call, Message], Message]

_MOST = 10_000


def narrowed(room: Room, call: Call, op: str, ask: Message) -> Message:
    """The request as it may be made. A process of another session raises what an unknown one raises.

    Raises Denied for what such a connection cannot do at all: also for an operation that is not listed here.
    """
    narrow = NARROW.get(op)
    if narrow is None:
        raise Denied(f"{op} is not for a connection that is bound to its session", next="ask the person at the machine")
    return narrow(room, call, ask)


def find(room: Room, call: Call, text: str) -> Process:
    """The process that is meant, among those that the caller sees. Raises NotFound, Ambiguous, BadValue."""
    if not call.is_strict:
        return room.registry.identify(text)
    seen = {
        process.id: process
        for process in room.registry.all.values()
        if call.sees(process.meta.session) and not isinstance(process.state, Requested)
    }
    return identify(text, seen)


def session_for(room: Room, call: Call, named: str) -> str:
    """The session that is meant; one that nobody has where the caller does not see it."""
    return named if call.sees(room.sessions.resolve(named)) else f"nobody-{os.urandom(8).hex()}"


def seen(room: Room, call: Call, batch: Batch) -> Batch:
    """Of these events, those that the caller may hear of: what names another session is left out."""
    if not call.is_strict:
        return batch
    return Batch(batch.cursor, [event for event in batch.events if _is_seen(room, call, event)])


def _is_seen(room: Room, call: Call, event: Message) -> bool:
    named = [room.sessions.resolve(name) for key in ("session", "was") if isinstance(name := event.get(key), str)]
    return not named or any(map(call.sees, named))


def _one(room: Room, call: Call, ask: Message) -> Message:
    return {**ask, "process": find(room, call, values.needed_text(ask, "process", 4096)).id}


def _several(room: Room, call: Call, ask: Message) -> Message:
    names = values.texts(ask, "processes", _MOST)
    if names is None:
        return _session(room, call, ask)
    return {**ask, "processes": [find(room, call, name).id for name in names]}


def _session(room: Room, call: Call, ask: Message) -> Message:
    """Where a session is named that is not its own, one that nobody has: what comes of it is the same."""
    named = room.session(ask)
    return ask if named is None else {**ask, "session": session_for(room, call, named)}


def _own_session(room: Room, call: Call, ask: Message) -> Message:
    return _session(room, call, {**ask, "session": ask.get("session") or call.owner})


def _start(room: Room, call: Call, ask: Message) -> Message:
    named = room.session(ask)
    if named is not None and not call.sees(named):
        raise BadValue("this connection starts processes of its own session alone", next="leave session out")
    return {**ask, "session": call.owner, **({"gate": True} if call.is_gated else {})}


def _rename(room: Room, call: Call, ask: Message) -> Message:
    """Its own, and to a name that nobody has: it must not become another."""
    old, new = values.session(ask, "from"), values.session(ask, "to")
    if old is not None and not call.sees(room.sessions.resolve(old)):
        raise NotFound(f"no session {old}", next="holdfast sessions")
    if new is not None and _is_anothers(room, call, new):
        raise BadValue("a session cannot be given the name of another", next="choose another name")
    return ask


def _is_anothers(room: Room, call: Call, name: str) -> bool:
    """Whether anything belongs to that name, or it stands for another than the caller."""
    now = room.sessions.resolve(name)
    if now != name and not call.sees(now):
        return True
    owners = [process.meta.session for process in room.registry.all.values()]
    return name in owners or bool(room.inbox.all_of(name)) or any(one.session == name for one in room.approvals.all())


def _publish(room: Room, call: Call, ask: Message) -> Message:
    payload = ask.get("payload")
    named = payload.get("session") if isinstance(payload, dict) else None
    if isinstance(named, str) and not call.sees(room.sessions.resolve(named)):
        raise BadValue("this connection publishes for its own session alone", next="leave session out")
    return ask


def _as_it_is(room: Room, call: Call, ask: Message) -> Message:
    """The handler looks at `call.sees` itself, or there is nothing of anybody in the answer."""
    return ask


NARROW: dict[str, Narrow] = {
    "start": _start,
    "foreground": _start,
    "list": _own_session,
    "top": _own_session,
    "wait": _several,
    "kill": _several,
    "remove": _several,
    "end_session": _own_session,
    **dict.fromkeys(("inbox", "notices", "ack", "digest"), _own_session),
    "rename_session": _rename,
    "publish": _publish,
    **dict.fromkeys(("inspect", "logs", "search", "send", "resize", "restart", "screen", "attached", "transfer"), _one),
    **dict.fromkeys(("sessions", "events", "status", "doctor", "redact"), _as_it_is),
    **dict.fromkeys(("approvals", "approve", "deny", "approval_shown", "approval_password", "askpass"), _as_it_is),
}
#: For the person at the machine alone.
REFUSED = frozenset({"http", "stop", "sinks", "sink_test", "sink_dead", "sink_retry", "audit"})
