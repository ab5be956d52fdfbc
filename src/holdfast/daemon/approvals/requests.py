"""Requests for approval and decisions: in memory as on disk, and the surfaces that show them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.daemon.approvals import audit
from holdfast.daemon.core.log import note
from holdfast.daemon.core.tasks import ChangeSignals, drop, pause
from holdfast.errors import ApprovalRequired, HoldfastError, LimitReached
from holdfast.model import approvals as rules
from holdfast.model.approvals import ApprovalRecord, Scope, State
from holdfast.model.events import Event
from holdfast.model.notices.sinks import Outgoing
from holdfast.records import replace
from holdfast.store import approvals as rows
from holdfast.store import outbox
from holdfast.store.store import Store

if TYPE_CHECKING:
    from holdfast.daemon.core.context import Call, DaemonContext

#: Requests of one session that may wait for an answer at a time.
_MOST_PENDING = 100
#: Requests that are over and still listed.
_MOST_OVER = 2000
#: A decision stands long enough to be used by the caller that waits for it.
_SHORTEST_KEEP = 1.0
#: The wall clock may be set during a sleep, so no sleep is longer than this.
_LONGEST_SLEEP = 5.0


class Surface:
    """A client that shows requests to an approver, for as long as it is connected."""

    def __init__(self, sees: Callable[[str], bool]) -> None:
        #: Whether it gets the requests of a session.
        self.sees = sees
        self.changes: asyncio.Queue[ApprovalRecord] = asyncio.Queue()


class ApprovalRequests:
    """Every change is on disk, with its event and its audit entry, before it is published."""

    def __init__(self, store: Store, found: Iterable[ApprovalRecord], keep: float) -> None:
        self._store = store
        self._keep = max(_SHORTEST_KEEP, keep)
        self._all = {one.id: one for one in found}
        self._surfaces: set[Surface] = set()
        self._signals: ChangeSignals[str] = ChangeSignals()
        self._due_changed = asyncio.Event()
        #: Requests that a caller waits for now.
        self.awaited: set[str] = set()
        #: Request -> the connections of callers that ask an approver themselves.
        self.askers: dict[str, dict[object, None]] = {}
        #: Set when the daemon stops: requests that are pending then can be decided later.
        self.is_leaving = False

    def all(self) -> list[ApprovalRecord]:
        return list(self._all.values())

    def get(self, approval_id: str) -> ApprovalRecord:
        return self._all[approval_id]

    def pending(self) -> list[ApprovalRecord]:
        return [one for one in self._all.values() if one.is_pending]

    # Surfaces, and waiting for changes.

    @contextmanager
    def surface(self, sees: Callable[[str], bool]) -> Iterator[Surface]:
        """While a client shows requests. The pending ones come first."""
        surface = Surface(sees)
        for one in self.pending():
            if sees(one.session):
                surface.changes.put_nowait(one)
        self._surfaces.add(surface)
        self._signals.send_all()
        try:
            yield surface
        finally:
            self._surfaces.discard(surface)
            self._signals.send_all()

    def has_surface(self, session: str) -> bool:
        return any(surface.sees(session) for surface in self._surfaces)

    def watching(self, approval_id: str) -> AbstractContextManager[asyncio.Event]:
        """An event that is set when the request changes, or a surface connects or disconnects."""
        return self._signals.listening(approval_id)

    # Requests.

    def standing(self, fingerprint: str, session: str, claimant: str) -> ApprovalRecord | None:
        """An approval that covers it; a single-use one is preferred to one that covers more."""
        now = time.time()
        fitting = [one for one in self._all.values() if rules.covers(one, fingerprint, session, claimant, now)]
        return min(fitting, key=lambda one: (one.used_by != claimant, one.scope != "once"), default=None)

    def open_request(self, fingerprint: str, session: str, claimant: str) -> ApprovalRecord | None:
        """A pending request for exactly this, unless another caller waits for it."""
        now = time.time()
        for one in self._all.values():
            if one.is_pending and one.fingerprint == fingerprint and one.session == session:
                is_mine = one.process == claimant or one.id not in self.awaited
                if is_mine and not rules.is_due(one, now):
                    return one
        return None

    @contextmanager
    def waiting_for(self, approval_id: str) -> Iterator[None]:
        """While a caller waits for it: no other one joins, and the caller watches its deadline."""
        self.awaited.add(approval_id)
        try:
            yield
        finally:
            self.awaited.discard(approval_id)
            self._due_changed.set()

    async def request(self, make: Callable[[float, float], ApprovalRecord]) -> ApprovalRecord:
        """Record a new one. `make` gets the time now, and when it expires. Raises LimitReached, DiskFull."""
        now = time.time()
        new = make(now, now + self._keep)
        if sum(one.session == new.session for one in self.pending()) >= _MOST_PENDING:
            what = f"{_MOST_PENDING} requests of session {new.session} wait for an answer"
            raise LimitReached(what, next="holdfast approvals")
        details = {"command": new.command, "cwd": new.cwd, "backend": new.backend, "rule": new.rule, "why": new.why}
        event = Event("approval.requested", now, {**_identity(new), **details, "expires_at": new.expires_at})
        is_here = new.asker or new.action == "sudo"  # a password cannot be typed later
        away = [] if is_here else outbox.rows_for(rules.notice_of(new), self._store.sinks, now)
        await self._write(new, "approval.requested", event, away, **details)
        return new

    async def shown(self, approval: ApprovalRecord) -> None:
        """A surface says that an approver can see it."""
        if approval.is_pending and approval.shown_at is None:
            await self._write(replace(approval, shown_at=time.time()))

    async def wait_until(self, approval_id: str, expires_at: float) -> None:
        """A caller waits for the decision until then."""
        await self._write(replace(self._all[approval_id], expires_at=expires_at))

    async def decide(self, approval: ApprovalRecord, state: State, scope: Scope | None, by: str) -> ApprovalRecord:
        """The decision, on disk when it returns. Raises NotNow, DiskFull."""
        now = rules.decided(approval, state, scope, by, time.time(), self._keep)
        if now is not approval:
            await self._write(now, "approval.decided", _decided(now), state=state, scope=scope, by=by)
        return now

    async def withdraw(self, approval_id: str) -> None:
        """The caller gave up. An approval that was not used is withdrawn, too."""
        approval = self._all[approval_id]
        if approval.is_pending or (approval.scope == "once" and approval.is_valid and approval.used_by is None):
            over = rules.over(approval, "withdrawn", "withdrawn", time.time())
            event = Event("approval.withdrawn", time.time(), _identity(over))
            await self._write(over, "approval.withdrawn", event)

    async def expire(self, approval_id: str, reason: str) -> ApprovalRecord:
        """The time is over, so it is denied. A decision that came just before stands."""
        approval = self._all[approval_id]
        if approval.is_pending or reason != "timeout":
            approval = rules.over(approval, "expired", reason, time.time())
            await self._write(approval, "approval.decided", _decided(approval), state="expired", reason=reason)
        return approval

    # Using them.

    async def claim(self, approval: ApprovalRecord, claimant: str) -> ApprovalRecord:
        """Claim an approval for an action. On disk when it returns: no crash lets it be used twice. Raises DiskFull."""
        now = rules.claimed(approval, claimant, time.time(), self._keep)
        try:
            await self._write(now, "approval.used", None, scope=now.scope, claimant=claimant)
        except BaseException:
            self.release(now)
            raise
        return now

    def release(self, approval: ApprovalRecord) -> None:
        """The action was not done: the approval can be used again."""
        if approval.scope == "once" and self._all.get(approval.id) is approval:
            self._write_soon(rules.released(approval), "approval.released")

    def spend(self, approval: ApprovalRecord) -> None:
        """The action was done."""
        if approval.scope == "once" and approval.id in self._all:
            self._write_soon(rules.spent(self._all[approval.id], time.time()))

    def settle(self, was_used: Callable[[str], bool]) -> None:
        """After a crash: `was_used` says whether the action of a claimant was done."""
        for one in self.all():
            if one.used_by is not None and one.spent_at is None and was_used(one.used_by):
                self.spend(one)

    # Deadlines, and renamed sessions.

    async def watch_time(self) -> None:
        """Expire requests when they are due, for ever."""
        while True:
            self._due_changed.clear()
            now = time.time()
            for one in self.all():
                if rules.is_due(one, now) and one.id not in self.awaited:
                    try:
                        await self.expire(one.id, "timeout" if one.is_pending else "unused")
                    except HoldfastError as failed:  # it is over; on a full disk the store writes it later
                        note("not-recorded", approval=one.id, why=failed.message)
            times = [due for one in self._all.values() if (due := rules.due_at(one)) and one.id not in self.awaited]
            until = min(times, default=now + _LONGEST_SLEEP)
            await pause(min(_LONGEST_SLEEP, max(0.05, until - now)), unless=self._due_changed)

    async def end_session(self, session: str) -> None:
        """Requests of the session, and its unused approvals except those for always, expire with it."""
        for one in self.all():
            is_open = one.is_pending or (one.is_valid and one.scope != "always" and one.used_by is None)
            if is_open and one.session == session and one.id not in self.awaited:
                await self.expire(one.id, "session_end")

    def renamed(self, old: str, new: str) -> None:
        for one in self.all():
            if one.session == old:
                self._all[one.id] = replace(one, session=new)
        self._store.change_soon(partial(rows.rename, old=old, new=new))

    def forget(self, before: float) -> None:
        """Remove those that were over before that time, and all but the newest."""
        over = [one for one in self.all() if not one.is_pending and not one.is_valid]
        most = over[: max(0, len(over) - _MOST_OVER)]
        gone = [one.id for one in over if one in most or (one.decided_at or one.at) < before]
        for id_ in gone:
            del self._all[id_]
        if gone:
            self._store.change_soon(partial(rows.forget, ids=gone))

    async def _write(
        self,
        now: ApprovalRecord,
        what: str = "",
        event: Event | None = None,
        away: Iterable[Outgoing] = (),
        **more: Any,
    ) -> None:
        self._all[now.id] = now
        try:
            await self._store.change(_edit(now, what, away, **more), [event] if event is not None else [])
        finally:
            self._publish(now)

    def _write_soon(self, now: ApprovalRecord, what: str = "") -> None:
        self._all[now.id] = now
        self._store.change_soon(_edit(now, what))
        self._publish(now)

    def _publish(self, now: ApprovalRecord) -> None:
        self._due_changed.set()
        self._signals.send(now.id)
        for surface in self._surfaces:
            if surface.sees(now.session):
                surface.changes.put_nowait(now)


def _edit(now: ApprovalRecord, what: str, away: Iterable[Outgoing] = (), **more: Any) -> audit.Edit:
    write_entry = audit.entry(what, **_identity(now), **more) if what else None

    def edit(connection: rows.Connection) -> None:
        rows.put(connection, now)
        outbox.append(connection, away)
        if not now.is_pending:
            outbox.withdraw(connection, rules.notice_of(now).key)
        if write_entry is not None:
            write_entry(connection)

    return edit


def _decided(approval: ApprovalRecord) -> Event:
    fields = {"state": approval.state, "scope": approval.scope, "by": approval.decided_by, "reason": approval.reason}
    return Event("approval.decided", time.time(), {**_identity(approval), **fields})


def _identity(approval: ApprovalRecord) -> dict[str, Any]:
    names = ("id", "session", "action", "process")
    return {name: getattr(approval, name) for name in names}


def asks_itself(context: DaemonContext, asker: object, call: Call, required: ApprovalRequired) -> None:
    """The caller asks an approver itself; `asker` is its connection. A caller that has given up does not ask."""
    approvals, approval = context.approvals, (required.data or {})["approval"]
    if not approval["asker"]:
        return  # an earlier request, which does not end with this connection
    for decided in approvals.askers.keys() - {one.id for one in approvals.pending()}:
        del approvals.askers[decided]
    approvals.askers.setdefault(approval["id"], {})[asker] = None
    if call.given_up.is_set():
        _leave(context, asker, approval["id"])


def disconnected(context: DaemonContext, asker: object) -> None:
    """Withdraw what only this connection asked for. When the daemon stops, requests stay for clients that come back."""
    if not context.approvals.is_leaving:
        for approval_id in [one for one, askers in context.approvals.askers.items() if asker in askers]:
            _leave(context, asker, approval_id)


def _leave(context: DaemonContext, asker: object, approval_id: str) -> None:
    approvals = context.approvals
    drop(approvals.askers, approval_id, asker)
    is_left = approval_id not in approvals.askers and approval_id not in approvals.awaited
    if is_left and any(one.id == approval_id for one in approvals.pending()):
        context.background.start(approvals.withdraw(approval_id), "withdrawn")
