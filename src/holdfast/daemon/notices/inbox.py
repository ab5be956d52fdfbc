"""The pending notices of each session: in memory, as on disk. Written first, then offered, until acknowledged.

A notice is pending, or claimed (its content is about to be delivered in the reply to a request), or acknowledged. See
docs/delivery.md.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count, islice
from operator import itemgetter
from typing import Any

from holdfast.daemon.core.tasks import ChangeSignals, drop
from holdfast.daemon.notices.event_stream import EventStream
from holdfast.errors import DiskFull
from holdfast.model.events import Event, Notice, StoredEvent, id_of, of_notice
from holdfast.model.process import ProcessId
from holdfast.records import Struct, replace
from holdfast.store import rows
from holdfast.store.replies import ReplyRecord
from holdfast.store.store import Store
from holdfast.store.writer import Edit
from holdfast_keeper import failpoints

#: Claims a notice: a request that is about to deliver it, or a connection that took it.
Holder = object

_CLAIM = "wait"
#: The kinds of notices that the reply to a wait can deliver.
_REPLIED = ("completion", "ready")
#: Holds the claims of a daemon that died: the client may still confirm the reply, or ask again.
_EARLIER = "earlier"
_AT_ONCE = 1000
#: An end that a reply has delivered is acknowledged with the next commit, within this time; the second one is for a
#: reply that is recorded beside the store.
_SETTLED_WITHIN = 0.008
_SETTLED_WITHIN_IF_RECORDED = 0.25


class Acked(Struct, frozen=True):
    acked: list[str]
    """By this call."""
    known: list[str]
    """Before it."""
    unknown: list[str]


class SessionInboxes:
    """`resolve` gives the name that a session has now, `owner` the session that owns a process now."""

    def __init__(
        self,
        store: Store,
        recorded: ReplyRecord,
        pending: Iterable[Notice],
        resolve: Callable[[str], str],
        owner: Callable[[ProcessId], str | None],
    ) -> None:
        self._store = store
        self._recorded = recorded
        self._resolve = resolve
        self._owner = owner
        self._pending = PendingNotices()
        #: Requests that are about to deliver the content of a notice in their reply, and connections that took notices.
        self._replies = Claims()
        self._takers = Claims()
        self._awaited = AwaitedEnds(resolve)
        self._delivered: set[str] = set()
        #: Those of `_REPLIED` that are not on disk yet: replies may come before.
        self._coming: dict[str, Notice] = {}
        #: Of those, what a session has by now. The acknowledgement is written behind the notice.
        self._had_early: set[str] = set()
        #: Acknowledgements that a full disk keeps from being written, with their session: the next daemon would offer
        #: the notices again.
        self._late_acks: dict[str, str] = {}
        self._signals: ChangeSignals[str] = ChangeSignals()
        for notice in pending:
            if notice.claim is not None or notice.id in recorded.found:
                notice = replace(notice, claim=_CLAIM)
                self._replies.add(notice.id, _EARLIER)
            self._offer(replace(notice, session=resolve(notice.session)))

    # Arrival.

    def arrived(self, numbered: Iterable[StoredEvent]) -> None:
        """Offer the notices of events that are on disk now."""
        for event in numbered:
            if event.notice is not None:
                self._arrived(event.notice)
                failpoints.reach("notice-offered")

    def _arrived(self, notice: Notice) -> None:
        id_ = notice.id
        self._coming.pop(id_, None)
        if id_ in self._had_early:
            self._had_early.discard(id_)
            return
        if notice.claim is None and self._replies.of(id_):
            notice = replace(notice, claim=_CLAIM)
        self._offer(self._addressed(notice))
        if id_ in self._recorded.found_had:
            self._store.change_soon(*self._acknowledged([id_], _CLAIM))
        else:
            self.let_go([id_])

    def _addressed(self, notice: Notice) -> Notice:
        """Addressed to the session that owns the process now: it may have been transferred during the write."""
        owner = self._owner(notice.process) if notice.process is not None else None
        session = self._resolve(owner or notice.session)
        if session == notice.session:
            return notice
        self._store.change_soon(lambda connection: rows.address(connection, [notice.id], session))
        return replace(notice, session=session)

    def _offer(self, notice: Notice) -> None:
        self._pending.add(notice)
        self._signals.send(notice.session)

    # Reading and waiting.

    def is_read(self, session: str) -> bool:
        """Whether a caller waits for the notices of this session."""
        return self._signals.is_heard(session)

    async def all_arrived(self, session: str | None = None) -> None:
        """Notices of ends of this session, or of any, that are shown already can be read when this returns."""
        if any(session in (None, notice.session) for notice in self._coming.values()):
            await self._store.flush()

    def of_session(self, session: str, taker: Holder | None = None) -> list[Notice]:
        """Pending notices, oldest first; for a taker, without those that another one took."""
        return [self._pending[id_] for id_ in self._pending.of_session(session) if self._is_for(id_, taker)]

    def still(self, notices: Iterable[Notice], session: str) -> list[Notice]:
        """Those of them that are still pending for that session."""
        pending = (self._pending.get(notice.id) for notice in notices)
        return [notice for notice in pending if notice and notice.session == session and not self._is_held(notice.id)]

    def _is_for(self, id_: str, taker: Holder | None) -> bool:
        takers = self._takers.of(id_) if taker is not None else ()
        return (not takers or taker in takers) and not self._is_held(id_)

    def next_of(self, session: str, taker: Holder | None, beyond: Collection[str], most: int) -> list[Notice]:
        """As `of_session`, without those in `beyond`, and `most` at most."""
        ids = (id_ for id_ in self._pending.of_session(session) if id_ not in beyond and self._is_for(id_, taker))
        return [self._pending[id_] for id_ in islice(ids, most)]

    def is_pending(self, id_: str) -> bool:
        return id_ in self._pending

    def take(self, notices: Iterable[Notice], taker: Holder) -> None:
        """Keep them from other takers until they are acked or given back."""
        for notice in notices:
            self._takers.add(notice.id, taker)

    def give_back(self, taker: Holder, ids: Iterable[str] | None = None) -> None:
        """These, or all that it took."""
        for id_ in self._takers.all_of(taker) if ids is None else ids:
            self._takers.remove(id_, taker)
            if id_ in self._pending:
                self._signals.send(self._pending[id_].session)

    async def until_any(
        self, session: str, taker: Holder | None = None, wanted: Callable[[Notice], bool] | None = None
    ) -> list[Notice]:
        """Pending notices that are `wanted`, once there are any. The session may be renamed meanwhile."""
        while not (found := list(filter(wanted, self.of_session(self._resolve(session), taker)))):
            await self.until_changed(session)
        return found

    async def until_changed(self, session: str) -> None:
        """Until a notice arrived, was acknowledged or given back, or the session was renamed."""
        with self._signals.listening(self._resolve(session)) as changed:
            await changed.wait()

    def mark_delivered(self, notices: Iterable[Notice], to: str) -> None:
        """Struct, once for each, that it was handed out."""
        new = [notice for notice in notices if notice.id in self._pending and notice.id not in self._delivered]
        self._delivered.update(notice.id for notice in new)
        if new:
            now = time.time()
            self._store.record_soon([of_notice("delivered", notice, now, to=to) for notice in new])

    def all_of(self, session: str) -> list[Notice]:
        """Pending notices, claimed or not."""
        return [self._pending[id_] for id_ in self._pending.of_session(session)]

    def pending_of(self, process_id: ProcessId) -> list[Notice]:
        return [self._pending[id_] for id_ in self._pending.of_process(process_id)]

    def counts(self) -> dict[str, int]:
        """How many are pending for each session."""
        return self._pending.counts()

    # Acknowledging.

    async def ack(self, ids: Collection[str], by: str, session: str | None = None) -> Acked:
        """On disk when it returns: they are never delivered again. With a session, only its own. Raises DiskFull."""
        asked, acked = list(dict.fromkeys(ids)), dict[str, None]()
        for at in range(0, len(asked), _AT_ONCE):  # so that thousands of ids do not delay other callers
            mine = [id_ for id_ in asked[at : at + _AT_ONCE] if self._is_of(id_, session)]
            await self._remove(mine, by)
            acked |= dict.fromkeys(mine)
        others = [id_ for id_ in asked if id_ not in acked]
        known = await self._store.acked_notices(others, session) if others else set()
        return Acked(list(acked), [id_ for id_ in others if id_ in known], [id_ for id_ in others if id_ not in known])

    def _is_of(self, id_: str, session: str | None) -> bool:
        notice = self._pending.get(id_)
        return notice is not None and session in (None, notice.session)

    async def _remove(self, ids: list[str], by: str) -> None:
        if ids:
            await self._begin_removal(ids, by)

    def _begin_removal(self, ids: list[str], by: str, within: float | None = None) -> asyncio.Future[None]:
        sessions = {id_: (self._pending.get(id_) or self._coming[id_]).session for id_ in ids}
        written = self._store.begin_change(*self._acknowledged(ids, by), within=within)
        written.add_done_callback(partial(self._removed, sessions))
        return written

    def _removed(self, sessions: dict[str, str], written: asyncio.Future[None]) -> None:
        if written.cancelled():
            return
        if written.exception() is not None:
            self._late_acks.update(sessions)
        else:
            self._recorded.forget(sessions)
            failpoints.reach("notice-over")

    def _acknowledged(self, ids: list[str], by: str) -> tuple[Edit, list[Event]]:
        """Drop them. What is to be written of that."""
        now = time.time()
        happened = [of_notice("acked", self._drop(id_), now, by=by) for id_ in ids]
        return lambda connection: rows.ack(connection, ids, by, now), happened

    def _drop(self, id_: str) -> Notice:
        """It is not pending any more, or will not be when it arrives, and all claims are removed."""
        if id_ in self._pending:
            notice = self._pending.drop(id_)
        else:
            notice = self._coming[id_]
            self._had_early.add(id_)
        self._replies.remove_all(id_)
        self._takers.remove_all(id_)
        self._delivered.discard(id_)
        self._signals.send(notice.session)
        return notice

    def forget(self, acked_before: float, pending_before: float) -> None:
        """Remove notices that were acknowledged, or arrived and were not read, before these times."""
        for id_ in [notice.id for notice in self._pending if notice.at < pending_before]:
            self._drop(id_)
            self._recorded.forget([id_])
        self._store.forget_notices(acked_before, pending_before)

    # Ends that are delivered in the reply to a request.

    @contextmanager
    def awaiting(self, ids: Collection[ProcessId], session: str, is_enough: bool) -> Iterator[None]:
        """While a session waits for these ends, its inbox does not offer them. `is_enough`: each alone ends the wait.

        Notices that are not held (`hold`) when this is over are offered by the inbox after all.
        """
        try:
            with self._awaited.waiting(ids, session, is_enough):
                yield
        finally:
            for process_id in ids:
                self.let_go(self._pending.of_process(process_id))

    def claimed(self, notice: Notice) -> Notice:
        """The notice as it is to be written: claimed where its owner is about to get the same in a reply."""
        if notice.kind in _REPLIED:
            self._coming[notice.id] = notice
        if notice.id in self._recorded.found:  # a reply of the daemon before this one was ahead of the store
            self._replies.add(notice.id, _EARLIER)
        return replace(notice, claim=_CLAIM) if self._awaited.has(notice, is_enough=True) else notice

    def ids_of(self, keys: Iterable[str], session: str) -> list[str]:
        """The notices with these keys, of this session, that are pending or may become so after a crash."""
        session = self._resolve(session)
        return [
            id_
            for id_ in map(id_of, keys)
            if self._is_of(id_, session) or self._is_coming(id_, session) or self._late_acks.get(id_) == session
        ]

    def _is_coming(self, id_: str, session: str) -> bool:
        notice = self._coming.get(id_)
        if notice is None or notice.process is None or id_ in self._had_early:
            return False
        return self._resolve(self._owner(notice.process) or notice.session) == session

    async def hold(self, ids: Collection[str], holder: Holder) -> None:
        """Withhold these: their content is about to be delivered in a reply. Recorded when it returns.

        Followed by `settle` or `release` in any case.
        """
        new = list[str]()
        for id_ in ids:
            notice = self._pending.get(id_)
            if notice is None and id_ not in self._coming:
                continue
            self._replies.add(id_, holder)
            self._replies.remove(id_, _EARLIER)
            if notice is None:
                new.append(id_)
            elif notice.claim is None:
                new.append(id_)
                self._pending.change(id_, claim=_CLAIM)
        late = [id_ for id_ in new if not self._recorded.claim(id_)]
        if late:
            # On a full disk the store tries again; the caller gets its reply all the same.
            with suppress(DiskFull):
                await self._store.change(lambda connection: rows.claim(connection, late, _CLAIM))
        if new:
            failpoints.reach("notice-claimed")

    def settle(self, ids: Collection[str], by: str, session: str) -> None:
        """This session has the reply: acknowledge, soon, those that are its own, or will be when they are on disk."""
        mine = [id_ for id_ in ids if self._is_of(id_, session) or self._is_coming(id_, session)]
        is_recorded = all(self._recorded.had(id_) for id_ in mine)
        if mine:
            failpoints.reach("notice-had")
            self._begin_removal(mine, by, _SETTLED_WITHIN_IF_RECORDED if is_recorded else _SETTLED_WITHIN)

    def release(self, ids: Collection[str], holder: Holder) -> None:
        """This holder did not deliver them."""
        for id_ in ids:
            self._replies.remove(id_, holder)
        self.let_go(ids)

    async def release_earlier(self, after: float) -> None:
        """Acknowledge what replies of an earlier daemon have delivered. What it had claimed is offered after this time,
        if no client came back for it.
        """
        with suppress(DiskFull):
            await self._remove([id_ for id_ in self._recorded.found_had if id_ in self._pending], _CLAIM)
        await asyncio.sleep(after)
        self.release(self._replies.all_of(_EARLIER), _EARLIER)
        self._recorded.forget([id_ for id_ in self._recorded.found if id_ not in self._pending])
        self._recorded.found.clear()

    def let_go(self, ids: Collection[str]) -> None:
        """Offer those that no reply is about to deliver. The disk follows: a crash before that only delays them."""
        if not ids:
            return
        if early := [id_ for id_ in ids if id_ in self._coming and not self._replies.of(id_)]:
            self._recorded.forget(early)
        free = [id_ for id_ in ids if id_ in self._pending and not self._is_held(id_)]
        claimed = [id_ for id_ in free if self._pending[id_].claim is not None]
        for id_ in claimed:
            self._pending.change(id_, claim=None)
        if claimed:
            self._recorded.forget(claimed)
            self._store.change_soon(lambda connection: rows.claim(connection, claimed, None))
        for session in {self._pending[id_].session for id_ in free}:
            self._signals.send(session)

    def _is_held(self, id_: str) -> bool:
        return bool(self._replies.of(id_)) or self._awaited.has(self._pending[id_])

    # Owners.

    def moved(self, ids: Iterable[str], to: str, is_renamed: bool) -> None:
        """Offer these to their new owner, to which they belong on disk, in the order of their arrival.

        `is_renamed`: it is the same session under another name, so claims stay valid. A new owner is notified itself.
        """
        moving = [id_ for id_ in ids if id_ in self._pending]
        self._pending.move(moving, to)
        for id_ in moving if not is_renamed else ():
            self._takers.remove_all(id_)
            self._replies.remove_all(id_)
        self.let_go(moving)

    def reworded(self, notices: Iterable[Notice]) -> None:
        """Their data was changed on disk."""
        for notice in notices:
            if notice.id in self._pending:
                self._pending.change(notice.id, data=notice.data)

    def signal(self, session: str) -> None:
        """Wake the callers that wait for a change of this session."""
        self._signals.send(session)


def is_awaited(inbox: SessionInboxes, stream: EventStream, store: Store, session: str) -> bool:
    """Whether anyone waits for the events or notices of this session: clients or sinks."""
    return stream.is_followed("process.ended", "notification.queued") or inbox.is_read(session) or bool(store.sinks)


class PendingNotices:
    """Notices that are not acknowledged: by id, by session in the order of their arrival, and by process."""

    def __init__(self) -> None:
        self._notices: dict[str, Notice] = {}
        #: With numbers that increase with every arrival.
        self._by_session: dict[str, dict[str, int]] = {}
        self._by_process: dict[ProcessId | None, dict[str, None]] = {}
        self._numbers = count()

    def __contains__(self, id_: str) -> bool:
        return id_ in self._notices

    def __getitem__(self, id_: str) -> Notice:
        return self._notices[id_]

    def __iter__(self) -> Iterator[Notice]:
        return iter(self._notices.values())

    def get(self, id_: str) -> Notice | None:
        return self._notices.get(id_)

    def of_session(self, session: str) -> Collection[str]:
        """Oldest first."""
        return self._by_session.get(session, ())

    def of_process(self, process_id: ProcessId) -> Collection[str]:
        return self._by_process.get(process_id, ())

    def counts(self) -> dict[str, int]:
        """How many there are for each session that has some."""
        return {session: len(ids) for session, ids in self._by_session.items()}

    def add(self, notice: Notice) -> None:
        self._notices[notice.id] = notice
        self._by_session.setdefault(notice.session, {})[notice.id] = next(self._numbers)
        self._by_process.setdefault(notice.process, {})[notice.id] = None

    def change(self, id_: str, **fields: Any) -> None:
        """Change any fields but the session and the process."""
        self._notices[id_] = replace(self._notices[id_], **fields)

    def drop(self, id_: str) -> Notice:
        notice = self._notices.pop(id_)
        drop(self._by_session, notice.session, id_)
        drop(self._by_process, notice.process, id_)
        return notice

    def move(self, ids: Iterable[str], to: str) -> None:
        """Give them to another session. All notices of that session stay in the order of their arrival."""
        moving = {id_: self._notices[id_] for id_ in ids}
        numbers = {id_: self._by_session[notice.session][id_] for id_, notice in moving.items()}
        for id_, notice in moving.items():
            drop(self._by_session, notice.session, id_)
            self._notices[id_] = replace(notice, session=to)
        if numbers:
            together = {**self._by_session.get(to, {}), **numbers}
            self._by_session[to] = dict(sorted(together.items(), key=itemgetter(1)))


class Claims:
    """Which notices are claimed by which holders. A notice may have several."""

    def __init__(self) -> None:
        self._holders: dict[str, dict[Holder, None]] = {}
        self._claimed: dict[Holder, dict[str, None]] = {}

    def add(self, id_: str, holder: Holder) -> None:
        self._holders.setdefault(id_, {})[holder] = None
        self._claimed.setdefault(holder, {})[id_] = None

    def of(self, id_: str) -> Collection[Holder]:
        return self._holders.get(id_, ())

    def all_of(self, holder: Holder) -> list[str]:
        return list(self._claimed.get(holder, ()))

    def remove(self, id_: str, holder: Holder) -> None:
        if holder in self._claimed:
            drop(self._holders, id_, holder)
            drop(self._claimed, holder, id_)

    def remove_all(self, id_: str) -> None:
        for holder in list(self.of(id_)):
            self.remove(id_, holder)


class _Wait(Struct, frozen=True):
    session: str
    is_enough: bool


class AwaitedEnds:
    """The ends of processes that sessions wait for. `resolve` gives the current name of a session."""

    def __init__(self, resolve: Callable[[str], str]) -> None:
        self._resolve = resolve
        self._waits: dict[ProcessId, list[_Wait]] = {}

    @contextmanager
    def waiting(self, ids: Collection[ProcessId], session: str, is_enough: bool) -> Iterator[None]:
        """While this session waits for these ends. `is_enough`: each of them alone ends the wait."""
        wait = _Wait(session, is_enough)
        for process_id in ids:
            self._waits.setdefault(process_id, []).append(wait)
        try:
            yield
        finally:
            for process_id in ids:
                self._waits[process_id].remove(wait)
                if not self._waits[process_id]:
                    del self._waits[process_id]

    def has(self, notice: Notice, is_enough: bool = False) -> bool:
        """Whether the owner of a notice waits for the end that it is about. `is_enough`: and that ends the wait."""
        if notice.kind != "completion" or notice.process is None:
            return False
        for wait in self._waits.get(notice.process, ()):
            if (wait.is_enough or not is_enough) and self._resolve(wait.session) == notice.session:
                return True
        return False
