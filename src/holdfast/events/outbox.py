"""What a bridge has to send: what waits, and what was sent and is not acknowledged. For several threads; no I/O.

It never keeps a publisher waiting. When too much waits, the oldest goes; how much went is said in its place.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple


class OutboxItem(NamedTuple):
    n: int
    body: str


class OutboxBatch(NamedTuple):
    items: list[OutboxItem]
    dropped: int
    """How many were dropped before them, and are announced by the first of them."""


class Outbox:
    """`announce` makes the body of the event that announces a number of dropped events."""

    def __init__(self, most: int, window: int, announce: Callable[[int], str]) -> None:
        self.most = most
        self._window = window
        self._announce = announce
        self._news = threading.Condition()
        self._waiting: deque[OutboxItem] = deque()
        self._sent: deque[OutboxItem] = deque()
        self._last = 0
        self._dropped_n = 0
        self._unannounced = 0
        #: All that were ever dropped.
        self.dropped = 0

    def put(self, body: str) -> None:
        with self._news:
            self._last += 1
            if len(self._waiting) >= self.most:
                self._dropped_n = self._waiting.popleft().n
                self._unannounced += 1
                self.dropped += 1
            self._waiting.append(OutboxItem(self._last, body))
            self._news.notify_all()

    def sent_before(self) -> list[OutboxItem]:
        """What was sent and is not acknowledged: over a new link it goes first."""
        with self._news:
            return list(self._sent)

    def take(self, most: int, is_over: Callable[[], bool]) -> OutboxBatch:
        """Wait for something to send that may be sent; nothing when it is over. It counts as sent from then on."""
        with self._news:
            while not is_over():
                free = min(most, self._window - len(self._sent))
                if free > 0 and (self._waiting or self._unannounced):
                    return self._take(free)
                self._news.wait()
        return OutboxBatch([], 0)

    def _take(self, free: int) -> OutboxBatch:
        dropped, self._unannounced = self._unannounced, 0
        # Behind all that was sent and before all that waits, also by its number: that of the last dropped one.
        items = [OutboxItem(self._dropped_n, self._announce(dropped))] if dropped else []
        while self._waiting and len(items) < free:
            items.append(self._waiting.popleft())
        self._sent.extend(items)
        return OutboxBatch(items, dropped)

    def acknowledge(self, n: int) -> None:
        with self._news:
            while self._sent and self._sent[0].n <= n:
                self._sent.popleft()
            self._news.notify_all()

    def wake(self) -> None:
        """Have those who wait look whether it is over."""
        with self._news:
            self._news.notify_all()

    def drain(self, timeout: float) -> bool:
        """Wait until all is acknowledged; False when that takes too long."""
        with self._news:
            return self._news.wait_for(lambda: not (self._waiting or self._sent or self._unannounced), timeout)
