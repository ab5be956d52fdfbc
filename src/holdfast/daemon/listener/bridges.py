"""Events of other programs, received over bridges."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.errors import BadValue
from holdfast.store.store import Store
from holdfast.wire import json_bounds
from holdfast.wire.relay import RelayMessage, read_message

#: Lists, objects and keys of one message: enough for thousands of events. To read more takes long.
_MOST_NESTED = 250_000
#: Texts that wait for one reader of a channel.
_MOST_UNREAD = 256


class Bridges:
    """Persists the events of bridges, and counts them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        #: Bridges that are connected now.
        self.connected = 0
        #: Events received, repeated ones included; frames that were not events.
        self.taken = 0
        self.ignored = 0
        self._channels: dict[str, set[asyncio.Queue[str | None]]] = {}

    @contextmanager
    def connection(self) -> Iterator[None]:
        self.connected += 1
        try:
            yield
        finally:
            self.connected -= 1

    @contextmanager
    def channel(self, name: str) -> Iterator[asyncio.Queue[str | None]]:
        """The texts that come over bridges of this channel, while this lasts; None when the reader is too slow."""
        texts: asyncio.Queue[str | None] = asyncio.Queue()
        readers = self._channels.setdefault(name, set())
        readers.add(texts)
        try:
            yield texts
        finally:
            readers.discard(texts)
            if not readers and self._channels.get(name) is readers:
                del self._channels[name]

    def send(self, channel: str, text: str) -> None:
        """Pass a text on to the readers of a channel. One that is too slow is cut off."""
        for texts in list(self._channels.get(channel, ())):
            if texts.qsize() < _MOST_UNREAD:
                texts.put_nowait(text)
            else:
                self._channels[channel].discard(texts)
                texts.put_nowait(None)

    def take(self, text: str) -> tuple[RelayMessage, asyncio.Future[None]]:
        """The content of a message, and a future that is done when all of it is on disk.

        The future fails with DiskFull if that can only happen later. Messages are written in the order of the calls.
        Raises BadValue for a message that would take long to read.
        """
        try:
            json_bounds.check_values(text.encode(errors="replace"), _MOST_NESTED)
        except json_bounds.TooManyValues:
            self.ignored += 1
            raise BadValue("the message has too many values", next="send fewer frames at once") from None
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
