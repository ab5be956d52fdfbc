"""Which clients' terminals show a process now. In memory alone: clients attach again after a start of the daemon."""

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

    def attached_to(self, process_id: ProcessId) -> list[dict[str, Any]]:
        """The field `attached` of the process object."""
        return [asdict(client) for client in self._attached.get(process_id, ())]
