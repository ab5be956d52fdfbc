"""What each session is yet to be told: in memory, as it is on disk. Written first, then offered, until it is acked.

A notice is pending, or held (somebody is about to be given the same news as an answer), or gone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple, TypeVar

from holdfast.model.happenings import Event, Numbered
from holdfast.model.ids import ProcessId
from holdfast.model.notices import Notice, completion_key, id_of
from holdfast.store import inbox as rows
from holdfast.store.store import Store

_Key = TypeVar("_Key")

#: Who holds a notice: a request, or a connection that took it.
Holder = object


class Acked(NamedTuple):
    acked: list[str]
    """By this call."""
    known: list[str]
    """Before it."""
    unknown: list[str]


class Inbox:
    """`resolve` gives the name that a session has now."""

    def __init__(self, store: Store, pending: Iterable[Notice], resolve: Callable[[str], str]) -> None:
        self._store = store
        self._resolve = resolve
        self._pending: dict[str, Notice] = {}
        self._by_session: dict[str, dict[str, None]] = {}
        self._by_process: dict[ProcessId | None, dict[str, None]] = {}
        self._holders: dict[str, Holder] = {}
        self._takers: dict[str, Holder] = {}
        self._told: set[str] = set()
        self._news: dict[str, set[asyncio.Event]] = {}
        #: Processes whose end an owner waits for: how many wait, and whether the end is all that one of them waits for.
        self._awaited: dict[ProcessId, list[bool]] = {}
        for notice in pending:
            self._offer(notice)

    # What comes in.

    def arrived(self, numbered: Iterable[Numbered]) -> None:
        """Offer what is on disk now."""
        for event in numbered:
            if event.notice is not None:
                self._offer(event.notice)

    def _offer(self, notice: Notice) -> None:
        if (session := self._resolve(notice.session)) != notice.session:
            notice = replace(notice, session=session)
        self._pending[notice.id] = notice
        self._by_session.setdefault(notice.session, {})[notice.id] = None
        self._by_process.setdefault(notice.process, {})[notice.id] = None
        if notice.claim is not None:
            self._holders[notice.id] = notice.claim
        self._wake(notice.session)

    # Looking and waiting.

    def of_session(self, session: str, taker: Holder | None = None) -> list[Notice]:
        """What is pending, oldest first; what somebody else took is left out for one who takes."""
        found = []
        for id_ in self._by_session.get(session, ()):
            taken = self._takers.get(id_)
            if not self._is_held(id_) and (taker is None or taken is None or taken is taker):
                found.append(self._pending[id_])
        return found

    def next_of(self, session: str, taker: Holder | None, beyond: Collection[str], most: int) -> list[Notice]:
        """As `of_session`, but for those `beyond`, and so many at most."""
        found: list[Notice] = []
        for id_ in self._by_session.get(session, ()):
            if len(found) >= most:
                break
            taken = self._takers.get(id_)
            is_free = taker is None or taken is None or taken is taker
            if id_ not in beyond and is_free and not self._is_held(id_):
                found.append(self._pending[id_])
        return found

    def is_pending(self, id_: str) -> bool:
        return id_ in self._pending

    def take(self, notices: Iterable[Notice], taker: Holder) -> None:
        """Keep them from other takers until they are acked or given back."""
        for notice in notices:
            self._takers[notice.id] = taker

    def give_back(self, taker: Holder) -> None:
        for id_ in [id_ for id_, holder in self._takers.items() if holder is taker]:
            del self._takers[id_]
            if (notice := self._pending.get(id_)) is not None:
                self._wake(notice.session)

    async def until_any(self, session: str, taker: Holder | None = None) -> list[Notice]:
        """What is pending, once there is something. The session may get another name meanwhile."""
        changed = asyncio.Event()
        while not (found := self.of_session(self._resolve(session), taker)):
            changed.clear()
            with self._listening(self._resolve(session), changed):
                await changed.wait()
        return found

    async def until_changed(self, session: str) -> None:
        """Until something came, went, or was given back, or the session got another name."""
        changed = asyncio.Event()
        with self._listening(self._resolve(session), changed):
            await changed.wait()

    def told(self, notices: Iterable[Notice], to: str) -> None:
        """Note, once for each, that it was handed out."""
        new = [notice for notice in notices if notice.id not in self._told]
        self._told.update(notice.id for notice in new)
        if new:
            now = time.time()
            self._store.record_soon([Event("notification.delivered", now, {**_who(one), "to": to}) for one in new])

    def all_of(self, session: str) -> list[Notice]:
        """What is pending, whoever holds it."""
        return [self._pending[id_] for id_ in self._by_session.get(session, ())]

    def pending_of(self, process_id: ProcessId) -> list[Notice]:
        return [self._pending[id_] for id_ in self._by_process.get(process_id, ())]

    @property
    def count(self) -> int:
        return len(self._pending)

    def counts(self) -> dict[str, int]:
        """How many are pending for each session."""
        return {session: len(ids) for session, ids in self._by_session.items() if ids}

    # Acknowledging.

    async def ack(self, ids: Collection[str], by: str, session: str | None = None) -> Acked:
        """On disk when it returns: never told again. With a session, only its own. Raises DiskFull."""
        mine = [id_ for id_ in dict.fromkeys(ids) if self._is_of(id_, session)]
        others = [id_ for id_ in dict.fromkeys(ids) if id_ not in mine]
        await self._remove(mine, by)
        known = await self._store.known_notices(others, session) if others else set()
        return Acked(mine, [id_ for id_ in others if id_ in known], [id_ for id_ in others if id_ not in known])

    def _is_of(self, id_: str, session: str | None) -> bool:
        notice = self._pending.get(id_)
        return notice is not None and session in (None, notice.session)

    async def _remove(self, ids: list[str], by: str) -> None:
        if not ids:
            return
        gone = [self._pending.pop(id_) for id_ in ids]
        for notice in gone:
            _drop(self._by_session, notice.session, notice.id)
            _drop(self._by_process, notice.process, notice.id)
        now = time.time()
        happened = [Event("notification.acked", now, {**_who(notice), "by": by}) for notice in gone]
        try:
            await self._store.change(lambda connection: rows.ack(connection, ids, by, now), happened)
        finally:
            for id_ in ids:
                for marks in (self._holders, self._takers):
                    marks.pop(id_, None)
                self._told.discard(id_)
            for session in {notice.session for notice in gone}:
                self._wake(session)

    # News that is given as the answer to a question.

    @contextmanager
    def awaiting(self, ids: Collection[ProcessId], is_all: bool) -> Iterator[None]:
        """While an owner waits for these ends. `is_all`: each of them alone ends the wait."""
        for process_id in ids:
            self._awaited.setdefault(process_id, []).append(is_all)
        try:
            yield
        finally:
            for process_id in ids:
                waits = self._awaited[process_id]
                waits.remove(is_all)
                if not waits:
                    del self._awaited[process_id]
                    self._stir(process_id)

    def claimed(self, notice: Notice) -> Notice:
        """The notice as it is to be written: claimed where its owner is about to be told the same as an answer."""
        if notice.kind == "completion" and notice.process is not None and any(self._awaited.get(notice.process, ())):
            return replace(notice, claim="wait")
        return notice

    async def hold(self, ids: Iterable[str], holder: Holder) -> list[str]:
        """Keep pending notices from everyone: their news is about to be told otherwise. On disk when it returns."""
        held = [id_ for id_ in ids if id_ in self._pending and self._holders.get(id_, "wait") == "wait"]
        new = [id_ for id_ in held if self._pending[id_].claim is None]
        for id_ in held:
            self._holders[id_] = holder
        if new:
            for id_ in new:
                self._pending[id_] = replace(self._pending[id_], claim="wait")
            await self._store.change(lambda connection: rows.claim(connection, new, "wait"))
        return held

    async def settle(self, ids: Collection[str], by: str) -> None:
        """It was told."""
        await self._remove([id_ for id_ in ids if id_ in self._pending], by)

    async def release(self, ids: Collection[str]) -> None:
        """It was not told after all."""
        back = [id_ for id_ in ids if id_ in self._pending]
        for id_ in back:
            self._holders.pop(id_, None)
            self._pending[id_] = replace(self._pending[id_], claim=None)
        if back:
            try:
                await self._store.change(lambda connection: rows.claim(connection, back, None))
            finally:
                for session in {self._pending[id_].session for id_ in back if id_ in self._pending}:
                    self._wake(session)

    def abandoned(self) -> list[str]:
        """What was claimed for a wait that is over without it."""
        return [id_ for id_, holder in self._holders.items() if holder == "wait" and not self._is_awaited(id_)]

    def completion_ids(self, ended: Iterable[tuple[ProcessId, int]]) -> list[str]:
        return [id_ for process_id, run in ended if (id_ := id_of(completion_key(process_id, run))) in self._pending]

    def _is_held(self, id_: str) -> bool:
        return id_ in self._holders or self._is_awaited(id_)

    def _is_awaited(self, id_: str) -> bool:
        notice = self._pending[id_]
        return notice.kind == "completion" and notice.process in self._awaited

    def _stir(self, process_id: ProcessId) -> None:
        for notice in self.pending_of(process_id):
            self._wake(notice.session)

    def forget(self, acked_before: float, pending_before: float) -> None:
        """Give up what was acknowledged, or nobody asked for, since these times."""
        for notice in [one for one in self._pending.values() if one.at < pending_before]:
            del self._pending[notice.id]
            _drop(self._by_session, notice.session, notice.id)
            _drop(self._by_process, notice.process, notice.id)
        self._store.forget_notices(acked_before, pending_before)

    # Owners.

    def moved(self, notices: Iterable[Notice]) -> None:
        """Offer these, which have another owner on disk now, to that."""
        for notice in notices:
            before = self._pending.get(notice.id)
            if before is not None:
                _drop(self._by_session, before.session, notice.id)
                self._pending[notice.id] = notice
                self._by_session.setdefault(notice.session, {})[notice.id] = None
                self._wake(before.session)
                self._wake(notice.session)

    def stir(self, session: str) -> None:
        """Have those who wait look again."""
        self._wake(session)

    def _wake(self, session: str) -> None:
        for news in self._news.get(session, ()):
            news.set()

    @contextmanager
    def _listening(self, session: str, news: asyncio.Event) -> Iterator[None]:
        self._news.setdefault(session, set()).add(news)
        try:
            yield
        finally:
            self._news[session].discard(news)
            if not self._news[session]:
                del self._news[session]


def _drop(index: dict[_Key, dict[str, None]], key: _Key, id_: str) -> None:
    index[key].pop(id_, None)
    if not index[key]:
        del index[key]


def _who(notice: Notice) -> dict[str, object]:
    fields = {"id": notice.id, "key": notice.key, "kind": notice.kind}
    return {**fields, "process": notice.process, "session": notice.session}
