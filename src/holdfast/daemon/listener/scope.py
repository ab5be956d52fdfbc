"""Connections that are bound to a session: processes and notices of other sessions do not exist for them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.notices.event_stream import Batch
from holdfast.errors import BadValue, Denied, NotFound
from holdfast.model.agents import INPUT_TOPIC
from holdfast.model.lifecycle import Requested
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.model.process_rules import identify
from holdfast.ops.agents import AgentControl, AgentLaunch, AgentSend, AgentSettings, AgentStart
from holdfast.ops.declare import Operation, Scope
from holdfast.ops.events import Publish
from holdfast.ops.processes import Transfer
from holdfast.ops.sessions import EndSession, RenameSession
from holdfast.ops.start import ApprovalOptions, Exec, Foreground, Start


def check_allowed(operation: type[Operation]) -> None:
    """Raises Denied for operations that a caller which is bound to its session may not use."""
    if operation.traits.scope == Scope.OPERATOR:
        what = f"{operation.op} is not for a connection that is bound to its session"
        raise Denied(what, next="ask the user")


def narrow(context: DaemonContext, call: Call, ask: Any) -> None:
    """Restrict a request to what the caller may see. A process of another session raises what an unknown one raises."""
    if call.is_bound and isinstance(ask, ApprovalOptions):
        ask.asker = False  # it cannot approve, so it has no approver to ask
    if isinstance(ask, Transfer | EndSession) and call.is_bound and ask.to is not None:
        _check_new_owner(context, call, ask.to)
    match ask.traits.scope:
        case Scope.PROCESS:
            ask.process = find(context, call, ask.process).id
        case Scope.PROCESSES if ask.processes is not None:
            ask.processes = [find(context, call, name).id for name in ask.processes]
        case Scope.PROCESSES if ask.session is not None:
            ask.session = session_for(context, call, ask.session)
        case Scope.SESSION:
            ask.session = session_for(context, call, ask.session or call.owner)
        case Scope.SPECIAL:
            _SPECIAL[type(ask)](context, call, ask)


def find(context: DaemonContext, call: Call, text: str) -> HeldProcess:
    """The process with this name, among those that the caller sees. Raises NotFound, Ambiguous, BadValue."""
    if not call.is_strict:
        return context.registry.identify(text)
    exact = context.registry.get(ProcessId(text))
    if exact is not None and call.sees(exact.meta.session):
        return exact  # also one that is being started: this caller has chosen its id
    seen = {
        process.id: process
        for process in context.registry.all.values()
        if call.sees(process.meta.session) and not isinstance(process.state, Requested)
    }
    return identify(text, seen)


def session_for(context: DaemonContext, call: Call, named: str) -> str:
    """The session; the name of an unknown one where the caller does not see it."""
    named = current_name(context, call, named)
    return named if call.sees(named) else f"unknown-{os.urandom(8).hex()}"


def current_name(context: DaemonContext, call: Call, named: str) -> str:
    """The current name of a session that a caller names. What a bound one calls its session is its session."""
    return call.owner if named == call.claimed else context.sessions.resolve(named)


def seen(context: DaemonContext, call: Call, batch: Batch) -> Batch:
    """Of these events, those that the caller may see: without events of other sessions."""
    if not call.is_strict:
        return batch
    return Batch(batch.cursor, [event for event in batch.events if _is_seen(context, call, event)])


def _is_seen(context: DaemonContext, call: Call, event: Message) -> bool:
    if str(event.get("type")).startswith("place."):
        places = {one.meta.place for one in context.registry.all.values() if call.sees(one.meta.session)}
        return event.get("place") in places
    named = [context.sessions.resolve(name) for key in ("session", "was") if isinstance(name := event.get(key), str)]
    return not named or any(map(call.sees, named))


def _start(context: DaemonContext, call: Call, ask: Start) -> None:
    if call.is_bound and ask.parent_session is not None:
        raise BadValue("a session gets its parent from outside", next="leave parent_session out")
    if call.is_strict and ask.acts_for is not None:
        raise Denied("a connection that is bound to its session starts nothing for another", next="leave acts_for out")
    _own(context, call, ask)


def _exec(context: DaemonContext, call: Call, ask: Exec) -> None:
    ask.process = find(context, call, ask.process).id
    _own(context, call, ask)


def _own(context: DaemonContext, call: Call, ask: Start | Exec) -> None:
    """What it starts belongs to its session, and is judged where the caller itself was judged. Raises BadValue."""
    if ask.session is not None and not call.sees(current_name(context, call, ask.session)):
        raise BadValue("this connection starts processes of its own session alone", next="leave session out")
    ask.session = call.owner
    ask.gate = ask.gate or call.is_gated


def _check_new_owner(context: DaemonContext, call: Call, to: str) -> None:
    """A held command gives nothing to other sessions: they would be notified of it. Raises Denied."""
    if not call.sees(current_name(context, call, to)):
        raise Denied("a held command cannot give processes to another session", next="ask the user")


def _rename(context: DaemonContext, call: Call, ask: RenameSession) -> None:
    """Only its own session, and to an unused name: it must not become another session."""
    if call.is_bound:  # nor one that is yet to come
        raise Denied("a held command cannot rename its session", next="ask the user")
    if ask.from_ is not None and not call.sees(context.sessions.resolve(ask.from_)):
        raise NotFound(f"no session {ask.from_}", next="holdfast sessions")
    if ask.to is not None and _is_anothers(context, call, ask.to):
        raise BadValue("a session cannot be given the name of another", next="choose another name")


def _is_anothers(context: DaemonContext, call: Call, name: str) -> bool:
    """Whether that name owns anything, or is a former name of a session that is not the caller's."""
    now = context.sessions.resolve(name)
    if now != name and not call.sees(now):
        return True
    owners = [process.meta.session for process in context.registry.all.values()]
    return (
        name in owners
        or bool(context.inbox.all_of(name))
        or any(one.session == name for one in context.approvals.all())
    )


def _publish(context: DaemonContext, call: Call, ask: Publish) -> None:
    payload = dict(ask.payload or {})
    if call.is_bound:
        _check_topic(ask.topic, payload.get("type"))
    named = payload.get("session")
    if isinstance(named, str) and not call.sees(current_name(context, call, named)):
        raise BadValue("this connection publishes for its own session alone", next="leave session out")
    if call.is_bound:
        ask.payload = {**payload, "session": call.owner}


def _check_topic(*topics: object) -> None:
    """Raises Denied for events that the daemon publishes: hooks and other programs rely on them."""
    for topic in topics:
        if isinstance(topic, str) and (topic.startswith(_DAEMON_TOPICS) or topic in _SESSION_TOPICS):
            raise Denied(f"{topic[:60]} events are published by the daemon", next="choose another topic")
        if topic == INPUT_TOPIC:
            raise _not_the_user()


def _speak(context: DaemonContext, call: Call, ask: AgentLaunch | AgentControl) -> None:
    """A held command must not speak as the user; other callers speak in their own session. Raises Denied."""
    if call.is_bound:
        raise _not_the_user()
    if not call.sees(current_name(context, call, ask.session)):
        raise Denied("this connection speaks to the agent of its own session alone", next="leave strict out")


def _not_the_user() -> Denied:
    return Denied("only the user writes to an agent", next="print it: the agent reads the output")


_DAEMON_TOPICS = ("process.", "notification.", "approval.", "watch.", "sink.", "daemon.", "place.")
_SESSION_TOPICS = frozenset({"session.start", "session.end", "session.rename", "session.reset"})

_SPECIAL: dict[type[Operation], Callable[[DaemonContext, Call, Any], None]] = {
    Start: _start,
    Foreground: _start,
    Exec: _exec,
    RenameSession: _rename,
    Publish: _publish,
    AgentStart: _speak,
    AgentSend: _speak,
    AgentSettings: _speak,
    AgentControl: _speak,
}
