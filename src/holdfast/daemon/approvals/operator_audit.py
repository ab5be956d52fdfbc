"""Callers that are not bound to a session may act on all processes; acts on those of other sessions are audited."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from holdfast.daemon.approvals import audit
from holdfast.daemon.core.context import Call, DaemonContext
from holdfast.errors import HoldfastError
from holdfast.model.process import HeldProcess
from holdfast.ops.declare import Operation
from holdfast.ops.processes import Kill, Remove
from holdfast.ops.sessions import EndSession, RenameSession

_MOST_NAMED = 100


def note(context: DaemonContext, call: Call, ask: Operation) -> asyncio.Future[None] | None:
    """Begin to write an audit entry for a request on processes of other sessions; None where there are none."""
    foreign = [process for process in _targets(context, ask) if process.meta.session != call.owner]
    if not foreign:
        return None
    ids, sessions = [process.id for process in foreign], sorted({process.meta.session for process in foreign})
    if ask.traits.frequent and not context.audit.is_new(ask.op, call.owner, *ids):
        return None
    named = {"processes": ids[:_MOST_NAMED], "sessions": sessions[:_MOST_NAMED]}
    return asyncio.ensure_future(context.store.change(audit.entry(f"operator.{ask.op}", by=call.owner, **named)))


def _targets(context: DaemonContext, ask: Operation) -> Iterable[HeldProcess]:
    """The processes that a request concerns; what cannot be found is the handler's to refuse."""
    match ask:
        case EndSession():
            return _of(context, context.current_name(ask.session))
        case RenameSession():
            return _of(context, context.current_name(ask.from_))
        case Kill(processes=None):
            session, task = context.current_name(ask.session), ask.task
            living = context.registry.living.values()
            return [
                process
                for process in living
                if ask.all or process.meta.session == session or (task is not None and process.meta.task == task)
            ]
    names = ask.processes if isinstance(ask, (Kill, Remove)) else (getattr(ask, "process", ""),)
    try:
        return [context.registry.identify(name) for name in names or ()]
    except HoldfastError:
        return []


def _of(context: DaemonContext, session: str | None) -> list[HeldProcess]:
    return [process for process in context.registry.living.values() if process.meta.session == session]
