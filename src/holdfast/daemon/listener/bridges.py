"""Events of other programs, received over bridges."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.store.store import Store
from holdfast.wire.relay import RelayMessage, read_message


class Bridges:
    """Persists the events of bridges, and counts them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        #: Bridges that are connected now.
        self.connected = 0
        #: Events received, repeated ones included; frames that were not events.
        self.taken = 0
        self.ignored = 0

    @contextmanager
    def connection(self) -> Iterator[None]:
        self.connected += 1
        try:
            yield
        finally:
            self.connected -= 1

    def take(self, text: str) -> tuple[RelayMessage, asyncio.Future[None]]:
        """The content of a message, and a future that is done when all of it is on disk.

        The future fails with DiskFull if that can only happen later. Messages are written in the order of the calls.
        """
        taken = read_message(text, time.time())
        self.taken += len(taken.events)
        self.ignored += taken.ignored
        if taken.events:
            written = self._store.begin_record(taken.events)
            written.add_done_callback(lambda done: done.exception())  # the bridge may be gone by then
        else:
            written = asyncio.get_running_loop().create_future()
            written.set_result(None)
        return taken, written

    def ignore(self) -> None:
        """Count a message that is not text."""
        self.ignored += 1
