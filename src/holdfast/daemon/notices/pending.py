"""Notices that are yet to be told, in memory: by their ids, by session in the order in which they came, by process."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import count
from operator import itemgetter
from typing import Any

from holdfast.daemon.notices.claims import drop
from holdfast.model.ids import ProcessId
from holdfast.model.notices import Notice


class Pending:
    """Whatever is asked of it costs as much as there is in the answer."""

    def __init__(self) -> None:
        self._notices: dict[str, Notice] = {}
        #: With the numbers in which they came.
        self._by_session: dict[str, dict[str, int]] = {}
        self._by_process: dict[ProcessId | None, dict[str, None]] = {}
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._notices)

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
        id_ = notice.id
        self._notices[id_] = notice
        self._by_session.setdefault(notice.session, {})[id_] = next(self._numbers)
        self._by_process.setdefault(notice.process, {})[id_] = None

    def change(self, id_: str, **fields: Any) -> None:
        """Anything but the session and the process."""
        self._notices[id_] = replace(self._notices[id_], **fields)

    def drop(self, id_: str) -> Notice:
        notice = self._notices.pop(id_)
        drop(self._by_session, notice.session, id_)
        drop(self._by_process, notice.process, id_)
        return notice

    def move(self, ids: Iterable[str], to: str) -> None:
        """To another session, among whose own they stand in the order in which all of them came."""
        moving = {id_: self._notices[id_] for id_ in ids}
        numbers = {id_: self._by_session[notice.session][id_] for id_, notice in moving.items()}
        for id_, notice in moving.items():
            drop(self._by_session, notice.session, id_)
            self._notices[id_] = replace(notice, session=to)
        if numbers:
            together = {**self._by_session.get(to, {}), **numbers}
            self._by_session[to] = dict(sorted(together.items(), key=itemgetter(1)))
