"""Requests for a person's approval: in memory as they are on disk, and who waits for news of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.daemon.approvals import audit
from holdfast.daemon.core.log import note
from holdfast.errors import ApprovalRequired, HoldfastError, LimitReached
from holdfast.model import approvals as rules
from holdfast.model.approvals import ApprovalRecord, Scope, State
from holdfast.model.events import Event
from holdfast.model.sinks import Outgoing
from holdfast.store import approvals as rows
from holdfast.store import outbox
from holdfast.store.store import Store

if TYPE_CHECKING:
    from holdfast.daemon.core.context import Call, DaemonContext

#: Requests of one session that may wait for an answer at a time.
_MOST_PENDING = 100
#: Those that are over and still shown.
_MOST_OVER = 2000
#: An answer holds for long enough to be used by whoever waits for it.
_SHORTEST_KEEP = 1.0
#: The wall clock may be set while we sleep: never for longer than this.
_LONGEST_SLEEP = 5.0


class Surface:
    """Somebody who shows requests to a person, for as long as it is there."""

    def __init__(self, sees: Callable[[str], bool]) -> None:
        #: Whether it hears of the requests of a session.
        self.sees = sees
        self.news: asyncio.Queue[ApprovalRecord] = asyncio.Queue()


class ApprovalRequests:
    """Every change is on disk, with its event and its line in the audit log, before anybody is told of it."""

    def __init__(self, store: Store, found: Iterable[ApprovalRecord], keep: float) -> None:
        self._store = store
        self._keep = max(_SHORTEST_KEEP, keep)
        self._all = {one.id: one for one in found}
        self._surfaces: set[Surface] = set()
        self._waits: dict[str, set[asyncio.Event]] = {}
        self._due_changed = asyncio.Event()
        #: Requests that a start waits for right now.
        self.awaited: set[str] = set()
        #: The connections whose callers ask a person for it themselves, by request (see askers.py).
        self.askers: dict[str, set[object]] = {}
        #: Set when the daemon goes: what is pending then is answered later.
        self.is_leaving = False

    def all(self) -> list[ApprovalRecord]:
        return list(self._all.values())

    def get(self, approval_id: str) -> ApprovalRecord:
        return self._all[approval_id]

    def pending(self) -> list[ApprovalRecord]:
        return [one for one in self._all.values() if one.is_pending]

    # Surfaces, and waiting for news.

    @contextmanager
    def surface(self, sees: Callable[[str], bool]) -> Iterator[Surface]:
        """While somebody shows requests. What is pending comes first."""
        surface = Surface(sees)
        for one in self.pending():
            if sees(one.session):
                surface.news.put_nowait(one)
        self._surfaces.add(surface)
        self._stir()
        try:
            yield surface
        finally:
            self._surfaces.discard(surface)
            self._stir()

    def has_surface(self, session: str) -> bool:
        return any(surface.sees(session) for surface in self._surfaces)

    @contextmanager
    def watching(self, approval_id: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever it changes, or a surface comes or goes."""
        changed = asyncio.Event()
        self._waits.setdefault(approval_id, set()).add(changed)
        try:
            yield changed
        finally:
            self._waits[approval_id].discard(changed)
            if not self._waits[approval_id]:
                del self._waits[approval_id]

    def _stir(self) -> None:
        for waits in self._waits.values():
            for changed in waits:
                changed.set()

    # Requests.

    def standing(self, fingerprint: str, session: str, claimant: str) -> ApprovalRecord | None:
        """An approval that covers it; one for once is taken before one that would cover more."""
        now = time.time()
        fitting = [one for one in self._all.values() if rules.covers(one, fingerprint, session, claimant, now)]
        return min(fitting, key=lambda one: (one.used_by != claimant, one.scope != "once"), default=None)

    def open_request(self, fingerprint: str, session: str, claimant: str) -> ApprovalRecord | None:
        """A request for exactly this that is pending, and that nobody else waits for."""
        now = time.time()
        for one in self._all.values():
            if one.is_pending and one.fingerprint == fingerprint and one.session == session:
                is_mine = one.process == claimant or one.id not in self.awaited
                if is_mine and not rules.is_due(one, now):
                    return one
        return None

    @contextmanager
    def waiting_for(self, approval_id: str) -> Iterator[None]:
        """While somebody does: nobody else joins, and its time is theirs to watch."""
        self.awaited.add(approval_id)
        try:
            yield
        finally:
            self.awaited.discard(approval_id)
            self._due_changed.set()

    async def request(self, make: Callable[[float, float], ApprovalRecord]) -> ApprovalRecord:
        """Record a new one, made of the time, and when it is over. Raises LimitReached, DiskFull."""
        now = time.time()
        new = make(now, now + self._keep)
        if sum(one.session == new.session for one in self.pending()) >= _MOST_PENDING:
            what = f"{_MOST_PENDING} requests of session {new.session} wait for an answer"
            raise LimitReached(what, next="holdfast approvals")
        said = {"command": new.command, "cwd": new.cwd, "backend": new.backend, "rule": new.rule, "why": new.why}
        event = Event("approval.requested", now, {**_who(new), **said, "expires_at": new.expires_at})
        is_here = new.asker or new.action == "sudo"  # a password is typed now, or not at all
        away = [] if is_here else outbox.rows_for(rules.notice_of(new), self._store.sinks, now)
        await self._write(new, "approval.requested", event, away, **said)
        return new

    async def shown(self, approval: ApprovalRecord) -> None:
        """A surface says that a person can see it."""
        if approval.is_pending and approval.shown_at is None:
            await self._write(replace(approval, shown_at=time.time()))

    async def wait_until(self, approval_id: str, expires_at: float) -> None:
        """Somebody waits for its answer until then."""
        await self._write(replace(self._all[approval_id], expires_at=expires_at))

    async def decide(self, approval: ApprovalRecord, state: State, scope: Scope | None, by: str) -> ApprovalRecord:
        """The answer, on disk when it returns. Raises NotNow, DiskFull."""
        now = rules.decided(approval, state, scope, by, time.time(), self._keep)
        if now is not approval:
            await self._write(now, "approval.decided", _decided(now), state=state, scope=scope, by=by)
        return now

    async def withdraw(self, approval_id: str) -> None:
        """Whoever asked does not want it any more: also an answer that was not used."""
        approval = self._all[approval_id]
        if approval.is_pending or (approval.scope == "once" and approval.is_valid and approval.used_by is None):
            over = rules.over(approval, "withdrawn", "withdrawn", time.time())
            event = Event("approval.withdrawn", time.time(), _who(over))
            await self._write(over, "approval.withdrawn", event)

    async def expire(self, approval_id: str, reason: str) -> ApprovalRecord:
        """The time is over, which is a no. Whatever was decided at the last moment stands."""
        approval = self._all[approval_id]
        if approval.is_pending or reason != "timeout":
            approval = rules.over(approval, "expired", reason, time.time())
            await self._write(approval, "approval.decided", _decided(approval), state="expired", reason=reason)
        return approval

    # Using them.

    async def claim(self, approval: ApprovalRecord, claimant: str) -> ApprovalRecord:
        """It is about to be used: on disk when this returns, so that no crash can use it again. Raises DiskFull."""
        now = rules.claimed(approval, claimant, time.time(), self._keep)
        try:
            await self._write(now, "approval.used", None, scope=now.scope, claimant=claimant)
        except BaseException:
            self.release(now)
            raise
        return now

    def release(self, approval: ApprovalRecord) -> None:
        """It was not used after all."""
        if approval.scope == "once" and self._all.get(approval.id) is approval:
            self._write_soon(rules.released(approval), "approval.released")

    def spend(self, approval: ApprovalRecord) -> None:
        """It was used."""
        if approval.scope == "once" and approval.id in self._all:
            self._write_soon(rules.spent(self._all[approval.id], time.time()))

    def settle(self, was_used: Callable[[str], bool]) -> None:
        """After a crash: `was_used` tells of a claimant whether it did what it had claimed an approval for."""
        for one in self.all():
            if one.used_by is not None and one.spent_at is None and was_used(one.used_by):
                self.spend(one)

    # Time, and names.

    async def watch_time(self) -> None:
        """Bring those whose time is over to their end, for ever."""
        while True:
            self._due_changed.clear()
            now = time.time()
            for one in self.all():
                if rules.is_due(one, now) and one.id not in self.awaited:
                    await self._end(one)
            times = [due for one in self._all.values() if (due := rules.due_at(one)) and one.id not in self.awaited]
            pause = min(_LONGEST_SLEEP, max(0.05, min(times, default=now + _LONGEST_SLEEP) - now))
            try:
                async with asyncio.timeout(pause):
                    await self._due_changed.wait()
            except TimeoutError:
                continue

    async def _end(self, due: ApprovalRecord) -> None:
        """It is over, though on a full disk the store learns of it later."""
        try:
            await self.expire(due.id, "timeout" if due.is_pending else "unused")
        except HoldfastError as failed:
            note("not-recorded", approval=due.id, why=failed.message)

    async def end_session(self, session: str) -> None:
        """What was approved for the session, or is still asked by it, ends with it."""
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
        """Drop those that were over before that time, and all but the newest."""
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
            self._tell(now)

    def _write_soon(self, now: ApprovalRecord, what: str = "") -> None:
        self._all[now.id] = now
        self._store.change_soon(_edit(now, what))
        self._tell(now)

    def _tell(self, now: ApprovalRecord) -> None:
        self._due_changed.set()
        for changed in self._waits.get(now.id, ()):
            changed.set()
        for surface in self._surfaces:
            if surface.sees(now.session):
                surface.news.put_nowait(now)


def _edit(now: ApprovalRecord, what: str, away: Iterable[Outgoing] = (), **more: Any) -> audit.Edit:
    note_it = audit.entry(what, **_who(now), **more) if what else None

    def edit(connection: rows.Connection) -> None:
        rows.put(connection, now)
        outbox.append(connection, away)
        if not now.is_pending:
            outbox.withdraw(connection, rules.notice_of(now).key)
        if note_it is not None:
            note_it(connection)

    return edit


def _decided(approval: ApprovalRecord) -> Event:
    fields = {"state": approval.state, "scope": approval.scope, "by": approval.decided_by, "reason": approval.reason}
    return Event("approval.decided", time.time(), {**_who(approval), **fields})


def _who(approval: ApprovalRecord) -> dict[str, Any]:
    names = ("id", "session", "action", "process")
    return {name: getattr(approval, name) for name in names}


def told_to_ask(context: DaemonContext, asker: object, call: Call, required: ApprovalRequired) -> None:
    """The caller is about to learn what to ask; `asker` is its connection. One that has given up will not ask."""
    approval = (required.data or {})["approval"]
    if not approval["asker"]:
        return  # it was there before, and is not for whoever joins it to take back
    _forget_answered(context)
    context.approvals.askers.setdefault(approval["id"], set()).add(asker)
    if call.given_up.is_set():
        _leave(context, asker, approval["id"])


def gone(context: DaemonContext, asker: object) -> None:
    """The connection is over. Where it is the daemon that goes, its requests wait for whoever comes back."""
    if not context.approvals.is_leaving:
        for approval_id in [one for one, askers in context.approvals.askers.items() if asker in askers]:
            _leave(context, asker, approval_id)


def _leave(context: DaemonContext, asker: object, approval_id: str) -> None:
    approvals = context.approvals
    left = approvals.askers[approval_id]
    left.discard(asker)
    if left:
        return
    del approvals.askers[approval_id]
    if approval_id in _pending(context) and approval_id not in approvals.awaited:
        context.background.start(approvals.withdraw(approval_id), "withdrawn")


def _forget_answered(context: DaemonContext) -> None:
    for approval_id in context.approvals.askers.keys() - _pending(context):
        del context.approvals.askers[approval_id]


def _pending(context: DaemonContext) -> set[str]:
    return {one.id for one in context.approvals.pending()}
