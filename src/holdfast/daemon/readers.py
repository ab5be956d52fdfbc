"""Who reads what is typed into processes."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.model.process import Process

_MOST = 1000


class Readers:
    """Who reads what is typed into each process, as far as that is known."""

    def __init__(self, kept: dict[str, str]) -> None:
        self.kept = kept
        #: Those of whose input something unfinished is on disk.
        self.open = set(kept)
        self._known: dict[tuple[str, int], Any] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    def lock(self, process: Process) -> asyncio.Lock:
        if len(self._locks) > _MOST:
            self._locks = {key: lock for key, lock in self._locks.items() if lock.locked()}
        return self._locks.setdefault(process.id, asyncio.Lock())

    def get(self, process: Process) -> Any:
        return self._known.get((process.id, process.run))

    def put(self, process: Process, reader: Any) -> None:
        if len(self._known) >= _MOST:
            self._known.pop(next(iter(self._known)))
        self._known[process.id, process.run] = reader
