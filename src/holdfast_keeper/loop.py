"""The event loop: one thread, one epoll, timers, and idle work."""

from __future__ import annotations

import heapq
import select
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

READ = select.EPOLLIN
WRITE = select.EPOLLOUT
HANGUP = select.EPOLLHUP | select.EPOLLERR

Ready = Callable[[int], None]
Due = Callable[[], None]


class Timer:
    __slots__ = ("due", "_run")

    def __init__(self, due: float, run: Due) -> None:
        self.due = due
        self._run: Due | None = run

    def __lt__(self, other: Timer) -> bool:
        return self.due < other.due

    def cancel(self) -> None:
        self._run = None

    def fire(self) -> None:
        if self._run is not None:
            self._run()


class _Watched(NamedTuple):
    mask: int
    ready: Ready
    since: int
    """The round in which it was registered."""


class Loop:
    """Handlers run one after the other and must not wait. `stop` ends `run` after the current round."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._ready: dict[int, _Watched] = {}
        self._round = 0
        self._timers: list[Timer] = []
        self._idle: deque[Due] = deque()
        self._running = True

    def watch(self, fd: int, mask: int, ready: Ready) -> None:
        """Call `ready(events)` when the descriptor is ready. A second call replaces mask and handler."""
        known = self._ready.get(fd)
        if known is None:
            self._epoll.register(fd, mask)
        elif known.mask != mask:
            self._epoll.modify(fd, mask)
        self._ready[fd] = _Watched(mask, ready, self._round if known is None else known.since)

    def unwatch(self, fd: int) -> None:
        if self._ready.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def after(self, delay: float, run: Due) -> Timer:
        timer = Timer(time.monotonic() + delay, run)
        heapq.heappush(self._timers, timer)
        return timer

    def when_idle(self, run: Due) -> None:
        """Call it once, in a round in which no descriptor was ready."""
        self._idle.append(run)

    def stop(self) -> None:
        self._running = False

    def run(self) -> None:
        while self._running:
            events = self._epoll.poll(self._timeout(), 256)
            self._round += 1
            for fd, mask in events:
                watched = self._ready.get(fd)
                # A descriptor that was closed and opened again in this round is not the one of this event.
                if watched is not None and watched.since < self._round:
                    watched.ready(mask)
            self._fire_timers()
            if not events and self._idle:
                self._idle.popleft()()

    def close(self) -> None:
        self._epoll.close()

    def _timeout(self) -> float | None:
        if self._idle:
            return 0
        if not self._timers:
            return None
        return max(0.0, self._timers[0].due - time.monotonic())

    def _fire_timers(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0].due <= now:
            heapq.heappop(self._timers).fire()
