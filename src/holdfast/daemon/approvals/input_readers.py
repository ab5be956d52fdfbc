"""Who reads what is typed into processes."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakValueDictionary

from holdfast.daemon.core.registry import Registry
from holdfast.model.ids import ProcessId
from holdfast.model.process import HeldProcess


class Readers:
    """Who reads what is typed into each process, as far as that is known: kept for as long as it runs."""

    def __init__(self, kept: dict[str, str], registry: Registry) -> None:
        self.kept = kept
        #: Those of whose input something unfinished is on disk.
        self.open = set(kept)
        #: With the run that it is about.
        self._known: dict[ProcessId, tuple[int, Any]] = {}
        #: Into which a person has typed since, and whether their line has no end yet.
        self._touched: dict[ProcessId, tuple[int, bool]] = {}
        self._locks: WeakValueDictionary[ProcessId, asyncio.Lock] = WeakValueDictionary()
        registry.listen(self._note)

    def lock(self, process: HeldProcess) -> asyncio.Lock:
        lock = self._locks.get(process.id)
        if lock is None:
            lock = self._locks[process.id] = asyncio.Lock()
        return lock

    def get(self, process: HeldProcess) -> Any:
        run, reader = self._known.get(process.id, (None, None))
        return reader if run == process.run else None

    def typed_by_person(self, process: HeldProcess, data: bytes) -> None:
        """What a person types is not judged, so that nobody knows where the shell is afterwards."""
        self._touched[process.id] = process.run, not data.endswith((b"\r", b"\n"))

    def forget_what_others_did(self, process: HeldProcess, reader: Any) -> None:
        """Before the reader is asked: what it knows may no longer be so."""
        run, unfinished = self._touched.pop(process.id, (None, False))
        if reader is not None and run == process.run:
            reader.forget(unfinished=unfinished)

    def put(self, process: HeldProcess, reader: Any) -> None:
        self._known[process.id] = process.run, reader

    def forget(self, process_id: ProcessId) -> None:
        """It is not known any more. What was on disk of it goes with its row."""
        self._drop(process_id)
        self.open.discard(process_id)
        self.kept.pop(process_id, None)

    def _note(self, process: HeldProcess) -> None:
        if process.has_ended:
            self._drop(process.id)

    def _drop(self, process_id: ProcessId) -> None:
        self._known.pop(process_id, None)
        self._touched.pop(process_id, None)
