"""What the inbox keeps in memory: pending notices, which requests and connections claim them, and awaited ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from operator import itemgetter
from typing import Any, NamedTuple

from holdfast.daemon.core.tasks import drop
from holdfast.model.ids import ProcessId
from holdfast.model.notices import Notice

#: Claims a notice: a request that is about to deliver it, or a connection that took it.
Holder = object


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
        drop(self._holders, id_, holder)
        drop(self._claimed, holder, id_)

    def remove_all(self, id_: str) -> None:
        for holder in list(self.of(id_)):
            self.remove(id_, holder)


class _Wait(NamedTuple):
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
        waits = [wait for wait in self._waits.get(notice.process, ()) if self._resolve(wait.session) == notice.session]
        return any(wait.is_enough or not is_enough for wait in waits)
