"""Which waiting processes are started next, and which never will be. No I/O, no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from holdfast.model.events import succeeded
from holdfast.model.process import HeldProcess
from holdfast.records import Struct


class QueueSettings(Struct, frozen=True):
    """How a queue behaves."""

    limit: int = 1
    """How many of its processes run at once."""
    paused: bool = False


class QueueVerdict(NamedTuple):
    start: list[HeldProcess]
    """Those whose turn has come."""
    skip: list[tuple[HeldProcess, str]]
    """Those that are not started at all, each with the id of the process that did not succeed."""


class Obstacles(Struct, frozen=True):
    """What keeps a waiting process from being started. Counts are of the processes that the caller sees."""

    queue: str | None
    """The queue that is paused or full, or in which others come first."""
    is_paused: bool
    limit: int | None
    """The limit of the queue, if it is reached."""
    running: int
    """How many run in the queue."""
    ahead: int
    """How many wait in the queue before it."""
    awaited: list[str]
    """The processes that it waits for: `c (proc_…), which runs`."""
    most: int | None
    """max_processes, if that many run."""

    def sentences(self) -> list[str]:
        found = [f"It waits for {text}" for text in self.awaited]
        if self.is_paused:
            found.append(f"The queue {self.queue} is paused: holdfast queue {self.queue} --resume")
        elif self.limit is not None:
            run = "process runs" if self.limit == 1 else "processes run"
            found.append(f"{self.limit} {run} in the queue {self.queue}, which is its limit")
        if self.ahead:
            others = "process waits" if self.ahead == 1 else "processes wait"
            found.append(f"{self.ahead} {others} before it in the queue {self.queue}")
        if self.most is not None:
            found.append(f"{self.most} processes run, which is the limit of all (max_processes)")
        return found

    def text(self) -> str:
        """`in the queue build, behind 2 others, and for b (proc_…), which runs`; empty if it is started at once."""
        found = []
        if self.queue is not None:
            others = self.running + self.ahead
            behind = f", behind {others} other{'' if others == 1 else 's'}" if others else ""
            paused = f", which is paused: holdfast queue {self.queue} --resume" if self.is_paused else ""
            found.append(f"in the queue {self.queue}{paused or behind}")
        found += [f"for {text}" for text in self.awaited]
        if self.most is not None and not found:
            found.append(f"because {self.most} processes run, which is the limit of all (max_processes)")
        return ", and ".join(found)


def next_starts(
    waiting: Iterable[HeldProcess],
    living: Iterable[HeldProcess],
    settings: Mapping[str, QueueSettings],
    get: Callable[[str], HeldProcess | None],
) -> QueueVerdict:
    """`waiting` is in the order of the requests; `living` are all processes that have not ended.

    One that waits for other processes does not hold up those behind it. A process that is between two runs keeps its
    place in the queue.
    """
    taken = Counter(process.meta.queue for process in living if not process.is_queued)
    start, skip = list[HeldProcess](), list[tuple[HeldProcess, str]]()
    for process in waiting:
        failed = next((one for one in process.meta.after_success if has_failed(get(one))), None)
        if failed is not None:
            skip.append((process, failed))
        elif not any(is_awaited(get(one)) for one in (*process.meta.after, *process.meta.after_success)):
            queue = process.meta.queue
            rule = settings.get(queue, QueueSettings()) if queue is not None else None
            if rule is None or (not rule.paused and taken[queue] < rule.limit):
                taken[queue] += 1
                start.append(process)
    return QueueVerdict(start, skip)


def is_awaited(process: HeldProcess | None) -> bool:
    return process is not None and not process.has_ended


def has_failed(process: HeldProcess | None) -> bool:
    """Whether it ended without success. One that is unknown cannot have succeeded."""
    return process is None or (process.has_ended and not succeeded(process))
