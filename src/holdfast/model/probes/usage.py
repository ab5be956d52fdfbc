"""The resource usage of a process, sampled over time. No I/O, no clock."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from holdfast.records import Struct, field

#: The number of samples in the history.
HISTORY = 60
#: A CPU share over a shorter time is not meaningful.
_SHORTEST = 0.2


class UsageSample(NamedTuple):
    at: float
    cpu_percent: float
    """Of one CPU, since the sample before."""
    rss_bytes: int


class Track(Struct):
    """The usage of one process. Times are of a monotonic clock."""

    cpu_seconds: float | None = None
    cpu_percent: float | None = None
    rss_bytes: int | None = None
    peak_rss_bytes: int | None = None
    ports: list[int] | None = None
    measured_at: float | None = None
    history: deque[UsageSample] = field(default_factory=lambda: deque(maxlen=HISTORY))
    _since: tuple[float, float] | None = None

    def is_fresh(self, now: float, max_age: float) -> bool:
        return self.measured_at is not None and now - self.measured_at <= max_age

    def take_cpu(self, cpu_seconds: float | None, now: float) -> bool:
        """Record the CPU time used so far. Returns whether it changed since the last time, or is unknown."""
        before, self.cpu_seconds = self.cpu_seconds, _no_less(cpu_seconds, self.cpu_seconds)
        self.measured_at = now
        if self.cpu_seconds is None:
            return True
        if self._since is None:
            self._since = (now, self.cpu_seconds)
        elif now - self._since[0] >= _SHORTEST:
            then, spent = self._since
            self.cpu_percent = 100.0 * (self.cpu_seconds - spent) / (now - then)
            self._since = (now, self.cpu_seconds)
        return self.cpu_seconds != before

    def take_memory(self, now: int | None, peak: int | None) -> None:
        self.rss_bytes = now
        self.peak_rss_bytes = most(self.peak_rss_bytes, now, peak)

    def remember(self, now: float) -> None:
        """Add the current values to the history."""
        if self.cpu_percent is not None and self.rss_bytes is not None:
            self.history.append(UsageSample(now, self.cpu_percent, self.rss_bytes))


def most(*values: int | None) -> int | None:
    """The largest known value."""
    return max((value for value in values if value is not None), default=None)


def _no_less(now: float | None, before: float | None) -> float | None:
    """CPU time never shrinks, also when the processes that used it are gone."""
    if now is None or before is None:
        return before if now is None else now
    return max(now, before)
