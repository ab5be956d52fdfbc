"""The programs that read the input of processes: shells, interpreters, others."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.daemon.core.registry import Registry
from holdfast.daemon.core.tasks import KeyedLocks
from holdfast.model.process import HeldProcess, ProcessId


class Readers:
    """The state of the reader of each process, kept for as long as the process runs."""

    def __init__(self, kept: dict[str, str], registry: Registry) -> None:
        self.kept = kept
        #: Processes whose unfinished input is on disk.
        self.open = set(kept)
        #: The run, and the reader in it.
        self._known: dict[ProcessId, tuple[int, Any]] = {}
        #: Processes that the user has typed into since: the run, and whether the last line is unfinished.
        self._touched: dict[ProcessId, tuple[int, bool]] = {}
        self._locks: KeyedLocks[ProcessId] = KeyedLocks()
        registry.listen(self._note, "pty", "stdin")

    def lock(self, process: HeldProcess) -> asyncio.Lock:
        return self._locks[process.id]

    def get(self, process: HeldProcess) -> Any:
        run, reader = self._known.get(process.id, (None, None))
        return reader if run == process.run else None

    def typed_by_user(self, process: HeldProcess, data: bytes) -> None:
        """The input of the user is not judged, so the state of the shell is unknown afterwards."""
        self._touched[process.id] = process.run, not data.endswith((b"\r", b"\n"))

    def forget_after_user(self, process: HeldProcess, reader: Any) -> None:
        """If the user has typed since, the reader forgets its state."""
        run, unfinished = self._touched.pop(process.id, (None, False))
        if reader is not None and run == process.run:
            reader.forget(unfinished=unfinished)

    def put(self, process: HeldProcess, reader: Any) -> None:
        self._known[process.id] = process.run, reader

    def forget(self, process_id: ProcessId) -> None:
        """The process was removed. Its unfinished input on disk goes with its row."""
        self._drop(process_id)
        self.open.discard(process_id)
        self.kept.pop(process_id, None)

    def _note(self, process: HeldProcess) -> None:
        if process.has_ended:
            self._drop(process.id)

    def _drop(self, process_id: ProcessId) -> None:
        self._known.pop(process_id, None)
        self._touched.pop(process_id, None)
