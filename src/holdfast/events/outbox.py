"""What a bridge has to send: what waits, and what was sent and is not acknowledged. For several threads; no I/O.

It never keeps a publisher waiting. When too much waits, the oldest of the least rank is dropped. How many were dropped
is said before all that waits.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple


class Rank(IntEnum):
    """What is dropped first, next and last."""

    SAMPLE = 0
    PLAIN = 1
    END = 2


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
        self._changed = threading.Condition()
        #: By rank, each with its place in the order of all.
        self._waiting: dict[Rank, deque[tuple[int, str]]] = {rank: deque() for rank in Rank}
        self._count = 0
        self._placed = 0
        self._sent: deque[OutboxItem] = deque()
        #: Numbers are given when an item is sent: those that arrive have no holes.
        self._last = 0
        self._unannounced = 0
        #: All that were ever dropped.
        self.dropped = 0

    def put(self, body: str, rank: Rank = Rank.PLAIN) -> None:
        with self._changed:
            self._placed += 1
            self._count += 1
            self._waiting[rank].append((self._placed, body))
            while self._count > self.most:
                next(filter(None, self._waiting.values())).popleft()
                self._count -= 1
                self._unannounced += 1
                self.dropped += 1
            self._changed.notify_all()

    def sent_before(self) -> list[OutboxItem]:
        """What was sent and is not acknowledged: over a new link it goes first."""
        with self._changed:
            return list(self._sent)

    def take(self, most: int, is_over: Callable[[], bool]) -> OutboxBatch:
        """Wait for something to send that may be sent; nothing when it is over. It counts as sent from then on."""
        with self._changed:
            while not is_over():
                free = min(most, self._window - len(self._sent))
                if free > 0 and (self._count or self._unannounced):
                    return self._take(free)
                self._changed.wait()
        return OutboxBatch([], 0)

    def _take(self, free: int) -> OutboxBatch:
        dropped, self._unannounced = self._unannounced, 0
        bodies = [self._announce(dropped)] if dropped else []
        while self._count and len(bodies) < free:
            bodies.append(min(filter(None, self._waiting.values()), key=lambda row: row[0][0]).popleft()[1])
            self._count -= 1
        items = [OutboxItem(n, body) for n, body in enumerate(bodies, self._last + 1)]
        self._last += len(items)
        self._sent.extend(items)
        return OutboxBatch(items, dropped)

    def acknowledge(self, n: int) -> None:
        with self._changed:
            while self._sent and self._sent[0].n <= n:
                self._sent.popleft()
            self._changed.notify_all()

    def wake(self) -> None:
        """Have those who wait look whether it is over."""
        with self._changed:
            self._changed.notify_all()

    def drain(self, timeout: float) -> bool:
        """Wait until all is acknowledged; False when that takes too long."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._count or self._sent or self._unannounced), timeout)
