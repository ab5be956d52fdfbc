"""Which clients use a process now: whose terminals show it, and who typed last. In memory alone: clients attach again
after a start of the daemon."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from holdfast.model.process import ProcessId
from holdfast.records import Struct, asdict


class AttachedClient(Struct, frozen=True):
    by: str
    since: float


class ProcessClients:
    def __init__(self) -> None:
        self._attached: dict[ProcessId, list[AttachedClient]] = {}
        self._typed: dict[ProcessId, tuple[str, float]] = {}

    @contextlib.contextmanager
    def attached(self, process_id: ProcessId, by: str) -> Iterator[None]:
        """While the terminal of this caller shows the process."""
        client = AttachedClient(by, time.time())
        clients = self._attached.setdefault(process_id, [])
        clients.append(client)
        try:
            yield
        finally:
            clients.remove(client)
            if not clients and self._attached.get(process_id) is clients:
                del self._attached[process_id]

    def typed(self, process_id: ProcessId, by: str) -> None:
        self._typed[process_id] = (by, time.time())

    def forget(self, process_id: ProcessId) -> None:
        self._typed.pop(process_id, None)

    def show(self, process_id: ProcessId) -> dict[str, Any]:
        """Fields of the process object."""
        typed = self._typed.get(process_id)
        return {
            "attached": [asdict(client) for client in self._attached.get(process_id, ())],
            "typed": {"by": typed[0], "at": typed[1]} if typed is not None else None,
        }
