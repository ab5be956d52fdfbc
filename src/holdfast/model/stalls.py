"""When a process counts as stalled: no output and no use of the processor for a chosen time.

An episode begins when that time is over and ends with the next output or use of the processor. What cannot be measured
is no reason to call anything stalled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from holdfast.model.process import HeldProcess

#: As much as a program uses that only waits: timers, a collector of garbage. A larger share counts as work.
_IDLE_SHARE = 0.01
#: Two ticks: less cannot be distinguished from none where time is counted in ticks.
_LEAST_USE = 0.02

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
_LOOKS_PER_LIMIT = 5


@dataclass(frozen=True, slots=True)
class Stall:
    """An episode that goes on, of one run of a process, which is named by its start."""

    run: float
    since: float
    """When it was last seen doing something."""
    output_bytes: int
    cpu_seconds: float | None
    last_output_at: float | None = None
    wait: str | None = None
    """What its main thread waits for, by the kernel's word."""


class ActivitySample(NamedTuple):
    at: float
    output_bytes: int
    cpu_seconds: float | None
    """None when it is unknown."""


class StallWatch(NamedTuple):
    """What is needed to judge the next sample."""

    active: ActivitySample
    """When it last did something."""
    last: ActivitySample

    @classmethod
    def begin(cls, sample: ActivitySample) -> StallWatch:
        return cls(sample, sample)

    @property
    def quiet(self) -> float:
        """For how long it has done nothing."""
        return self.last.at - self.active.at


def observe(watch: StallWatch, sample: ActivitySample) -> StallWatch:
    """The watch after one more sample. What happened since the last one counts as happening now."""
    is_active = _is_active(watch.last, sample) or _is_active(watch.active, sample)
    return StallWatch(sample if is_active else watch.active, sample)


def is_stalled(watch: StallWatch, limit: float) -> bool:
    return watch.quiet >= limit


def pause(limit: float) -> float:
    """How long to wait between two samples."""
    return min(_LONGEST_PAUSE, max(_SHORTEST_PAUSE, limit / _LOOKS_PER_LIMIT))


def resumed(stall: Stall, limit: float, now: float) -> StallWatch:
    """The watch of an episode that a daemon before us found: it goes on, unless something happened meanwhile."""
    before = ActivitySample(now - limit, stall.output_bytes, stall.cpu_seconds)
    return StallWatch(before, before._replace(at=now))


def mark_of(process: HeldProcess) -> Stall | None:
    """The episode that this run is in; of another run, or of one that is over, it counts for nothing."""
    mark = process.stall
    return mark if mark is not None and process.is_up and mark.run == process.started_at else None


def stall_object(stall: Stall) -> dict[str, Any]:
    """An episode as clients see it."""
    return {"since": stall.since, "last_output_at": stall.last_output_at, "wait": stall.wait}


def _is_active(before: ActivitySample, now: ActivitySample) -> bool:
    if now.output_bytes != before.output_bytes or now.cpu_seconds is None or before.cpu_seconds is None:
        return True
    used = now.cpu_seconds - before.cpu_seconds
    # It shrinks only where a member of the tree ended.
    return used < 0 or used >= max(_LEAST_USE, _IDLE_SHARE * (now.at - before.at))
