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
        #: Into which a person has typed since, and whether their line has no end yet.
        self._touched: dict[tuple[str, int], bool] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    def lock(self, process: Process) -> asyncio.Lock:
        if len(self._locks) > _MOST:
            self._locks = {key: lock for key, lock in self._locks.items() if lock.locked()}
        return self._locks.setdefault(process.id, asyncio.Lock())

    def get(self, process: Process) -> Any:
        return self._known.get((process.id, process.run))

    def typed_by_person(self, process: Process, data: bytes) -> None:
        """What a person types is not judged, so that nobody knows where the shell is afterwards."""
        self._touched[process.id, process.run] = not data.endswith((b"\r", b"\n"))
        if len(self._touched) > _MOST:
            self._touched.pop(next(iter(self._touched)))

    def forget_what_others_did(self, process: Process, reader: Any) -> None:
        """Before the reader is asked: what it knows may no longer be so."""
        unfinished = self._touched.pop((process.id, process.run), None)
        if reader is not None and unfinished is not None:
            reader.forget(unfinished=unfinished)

    def put(self, process: Process, reader: Any) -> None:
        if len(self._known) >= _MOST:
            self._known.pop(next(iter(self._known)))
        self._known[process.id, process.run] = reader
