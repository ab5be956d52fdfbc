"""The audit log: decisions, and requests of operators on processes of other sessions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from holdfast.errors import HoldfastError
from holdfast.model.process import HeldProcess
from holdfast.ops.declare import Operation
from holdfast.ops.processes import Kill, Remove
from holdfast.ops.sessions import EndSession, RenameSession
from holdfast.store import audit as rows
from holdfast.store.approvals import Connection
from holdfast.store.store import Store

if TYPE_CHECKING:
    from holdfast.daemon.core.context import Call, DaemonContext

Edit = Callable[[Connection], None]

#: A frequent operation, such as `send`, is noted once in this time for each session and process.
_REPEAT_INTERVAL = 60.0
_MOST_REMEMBERED = 10_000
_MOST_NAMED = 100


def entry(what: str, **fields: Any) -> Edit:
    """An entry, to be written in the transaction of its change."""
    at = time.time()
    return lambda connection: rows.append(connection, at, {"what": what, **fields})


class AuditLog:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._noted: dict[tuple[object, ...], float] = {}

    async def note(self, what: str, **fields: Any) -> None:
        """On disk when it returns. Raises DiskFull when it can only be done later."""
        await self._store.change(entry(what, **fields))

    def note_soon(self, what: str, **fields: Any) -> None:
        """On disk within a moment."""
        self._store.change_soon(entry(what, **fields))

    def is_new(self, *key: object) -> bool:
        """Whether it was not noted within the interval; from now on it was."""
        now = time.monotonic()
        if now - self._noted.get(key, -_REPEAT_INTERVAL) < _REPEAT_INTERVAL:
            return False
        if len(self._noted) >= _MOST_REMEMBERED:
            self._noted.clear()
        self._noted[key] = now
        return True


def note_operator(context: DaemonContext, call: Call, ask: Operation) -> asyncio.Future[None] | None:
    """Begin to write an entry for a request of a caller that is not bound to a session, on processes of other sessions.

    None where there are no such processes.
    """
    foreign = [process for process in _targets(context, ask) if process.meta.session != call.owner]
    if not foreign:
        return None
    ids, sessions = [process.id for process in foreign], sorted({process.meta.session for process in foreign})
    if ask.traits.frequent and not context.audit.is_new(ask.op, call.by, *ids):
        return None
    named = {"processes": ids[:_MOST_NAMED], "sessions": sessions[:_MOST_NAMED]}
    return asyncio.ensure_future(context.store.change(entry(f"operator.{ask.op}", by=call.by, **named)))


def _targets(context: DaemonContext, ask: Operation) -> Iterable[HeldProcess]:
    """The processes that a request is about. The handler refuses names that are unknown."""
    match ask:
        case EndSession():
            return context.registry.living_of(context.current_name(ask.session))
        case RenameSession():
            return context.registry.living_of(context.current_name(ask.from_))
        case Kill(processes=None):
            return context.registry.living_of(context.current_name(ask.session), ask.task, ask.all)
        case Remove(all=True):
            return [process for process in context.registry.all.values() if process.has_ended]
    names = ask.processes if isinstance(ask, (Kill, Remove)) else (getattr(ask, "process", ""),)
    try:
        return [context.registry.identify(name) for name in names or ()]
    except HoldfastError:
        return []
