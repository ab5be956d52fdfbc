"""Which requests and connections hold which notices, and which sessions wait for which ends. In memory only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from holdfast.model.ids import ProcessId

_Outer = TypeVar("_Outer")
_Inner = TypeVar("_Inner")
_Value = TypeVar("_Value")

#: What holds a notice: a request that is about to deliver it, or a connection that took it.
Holder = object


class Hands:
    """Which notices are held by what. One may have several holders."""

    def __init__(self) -> None:
        self._holders: dict[str, dict[Holder, None]] = {}
        self._held: dict[Holder, dict[str, None]] = {}

    def put(self, id_: str, holder: Holder) -> None:
        self._holders.setdefault(id_, {})[holder] = None
        self._held.setdefault(holder, {})[id_] = None

    def of(self, id_: str) -> Collection[Holder]:
        return self._holders.get(id_, ())

    def all_of(self, holder: Holder) -> list[str]:
        return list(self._held.get(holder, ()))

    def let_go(self, id_: str, holder: Holder) -> None:
        drop(self._holders, id_, holder)
        drop(self._held, holder, id_)

    def forget(self, id_: str) -> None:
        """Released by all holders."""
        for holder in list(self.of(id_)):
            self.let_go(id_, holder)


class _Wait(NamedTuple):
    session: str
    is_enough: bool


class Waits:
    """Ends that sessions wait for. `resolve` gives the name that a session has now."""

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

    def has(self, process_id: ProcessId | None, session: str) -> bool:
        """Whether this session waits for this end."""
        return process_id is not None and any(True for _ in self._of(process_id, session))

    def ends_with(self, process_id: ProcessId | None, session: str) -> bool:
        """Whether this session waits, and this end ends the wait."""
        return process_id is not None and any(wait.is_enough for wait in self._of(process_id, session))

    def _of(self, process_id: ProcessId, session: str) -> Iterator[_Wait]:
        waits = self._waits.get(process_id, ())
        return (wait for wait in waits if self._resolve(wait.session) == session)


class Bells:
    """Signals to tasks that wait for a change in a session."""

    def __init__(self) -> None:
        self._listeners: dict[str, dict[asyncio.Event, None]] = {}

    def ring(self, session: str) -> None:
        for listener in self._listeners.get(session, ()):
            listener.set()

    @contextmanager
    def listening(self, session: str, listener: asyncio.Event) -> Iterator[None]:
        self._listeners.setdefault(session, {})[listener] = None
        try:
            yield
        finally:
            drop(self._listeners, session, listener)


def drop(index: dict[_Outer, dict[_Inner, _Value]], outer: _Outer, inner: _Inner) -> None:
    """Remove it, if it is there, and its outer entry where that becomes empty."""
    inside = index.get(outer)
    if inside is not None:
        inside.pop(inner, None)
        if not inside:
            del index[outer]
