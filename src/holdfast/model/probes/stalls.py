"""When a process counts as stalled: no output and no CPU use for the given time.

An episode begins when that time is over and ends with the next output or CPU use. A process whose CPU use cannot be
measured never counts as stalled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.records import Struct, replace

if TYPE_CHECKING:
    from holdfast.model.process import HeldProcess

#: The CPU share of a program that only waits (timers, garbage collection). A larger share counts as activity.
_IDLE_SHARE = 0.01
#: Two clock ticks: less cannot be distinguished from none.
_LEAST_USE = 0.02

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
_SAMPLES_PER_LIMIT = 5


class Stall(Struct, frozen=True):
    """A current episode. `run` is the start time of the run of the process."""

    run: float
    since: float
    """When it was last active."""
    output_bytes: int
    cpu_seconds: float | None
    last_output_at: float | None = None
    wait: str | None = None
    """What its main thread waits for, as reported by the kernel."""


class ActivitySample(Struct, frozen=True):
    at: float
    output_bytes: int
    cpu_seconds: float | None
    """None when it is unknown."""


class StallWatch(Struct, frozen=True):
    """The samples that the next one is compared with."""

    active: ActivitySample
    """The last sample with activity."""
    last: ActivitySample

    @classmethod
    def begin(cls, sample: ActivitySample) -> StallWatch:
        return cls(sample, sample)

    @property
    def quiet(self) -> float:
        """For how long it has been inactive."""
        return self.last.at - self.active.at


def observe(watch: StallWatch, sample: ActivitySample) -> StallWatch:
    """The watch after one more sample. Activity since the last sample counts as activity now."""
    is_active = _is_active(watch.last, sample) or _is_active(watch.active, sample)
    return StallWatch(sample if is_active else watch.active, sample)


def is_stalled(watch: StallWatch, limit: float) -> bool:
    return watch.quiet >= limit


def pause(limit: float) -> float:
    """How long to wait between two samples."""
    return min(_LONGEST_PAUSE, max(_SHORTEST_PAUSE, limit / _SAMPLES_PER_LIMIT))


def resumed(stall: Stall, limit: float, now: float) -> StallWatch:
    """The watch of an episode that an earlier daemon recorded: it continues unless there was activity meanwhile."""
    before = ActivitySample(now - limit, stall.output_bytes, stall.cpu_seconds)
    return StallWatch(before, replace(before, at=now))


def mark_of(process: HeldProcess) -> Stall | None:
    """The episode of this run; None for one of another run, or after the end."""
    mark = process.stall
    return mark if mark is not None and process.is_up and mark.run == process.started_at else None


def stall_object(stall: Stall) -> dict[str, Any]:
    """An episode as clients see it."""
    return {"since": stall.since, "last_output_at": stall.last_output_at, "wait": stall.wait}


def _is_active(before: ActivitySample, now: ActivitySample) -> bool:
    if now.output_bytes != before.output_bytes or now.cpu_seconds is None or before.cpu_seconds is None:
        return True
    used = now.cpu_seconds - before.cpu_seconds
    # The sum shrinks only when a process of the tree has ended.
    return used < 0 or used >= max(_LEAST_USE, _IDLE_SHARE * (now.at - before.at))
