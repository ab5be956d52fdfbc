"""The audit log of the daemon: decisions, and acts on processes of other sessions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from holdfast.store import audit as rows
from holdfast.store.approvals import Connection
from holdfast.store.store import Store

Edit = Callable[[Connection], None]

#: Typing and the like is noted once in this time, for each session and process.
_PAUSE = 60.0
_MOST_REMEMBERED = 10_000


def entry(what: str, **fields: Any) -> Edit:
    """An entry, to be written in the transaction of its change."""
    at = time.time()
    return lambda connection: rows.append(connection, at, {"what": what, **fields})


class AuditLog:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._noted: dict[tuple[object, ...], float] = {}

    async def note(self, what: str, **fields: Any) -> None:
        """On disk when it returns. Raises DiskFull when it can only be done later."""
        await self._store.change(entry(what, **fields))

    def note_soon(self, what: str, **fields: Any) -> None:
        """On disk within a moment."""
        self._store.change_soon(entry(what, **fields))

    def is_new(self, *key: object) -> bool:
        """Whether it was not noted a moment ago; from now on it was."""
        now = time.monotonic()
        if now - self._noted.get(key, -_PAUSE) < _PAUSE:
            return False
        if len(self._noted) >= _MOST_REMEMBERED:
            self._noted.clear()
        self._noted[key] = now
        return True
