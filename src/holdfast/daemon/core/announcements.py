"""Events about the daemon itself: that it started, took over after a crash, or is being stopped."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.model.events import Event
from holdfast.store import inbox as rows
from holdfast.store.store import Store
from holdfast.version import VERSION

#: Under this name the store remembers whether the last daemon was stopped on purpose.
_NAME = "daemon"


class Announcements:
    """`memory` is what the store remembered when it was opened."""

    def __init__(self, store: Store, memory: Mapping[str, Any]) -> None:
        self._store = store
        self._is_after_crash = memory.get(_NAME) == {"stopped": False}

    def start(self) -> None:
        """`daemon.start`, on disk soon."""
        self._store.change_soon(lambda connection: rows.remember(connection, _NAME, {"stopped": False}))
        self._store.record_soon([_event("start")])

    def recovered(self, running: int) -> None:
        """`daemon.recovered`, where the last daemon was not stopped on purpose and the truth is known again."""
        if self._is_after_crash:
            self._store.record_soon([_event("recovered", running=running)])

    async def stop(self, running: int) -> None:
        """`daemon.stop`, on disk when it returns; on a full disk it is left out."""
        with contextlib.suppress(HoldfastError):
            await self._store.change(
                lambda connection: rows.remember(connection, _NAME, {"stopped": True}),
                [_event("stop", running=running)],
            )


def _event(what: str, **more: int) -> Event:
    return Event(f"daemon.{what}", time.time(), {"version": VERSION, "pid": os.getpid(), **more})
