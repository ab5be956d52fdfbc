"""Which waiting processes are started next, and which never will be. No I/O, no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from holdfast.model.events import succeeded
from holdfast.model.process import HeldProcess


class QueueSettings(NamedTuple):
    """How a queue behaves."""

    limit: int = 1
    """How many of its processes run at once."""
    paused: bool = False


class QueueVerdict(NamedTuple):
    start: list[HeldProcess]
    """Those whose turn has come."""
    skip: list[tuple[HeldProcess, str]]
    """Those that are not started at all, each with the id of the process that did not succeed."""


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
