"""When a process has run for as long as it was allowed to."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.model.lifecycle import Running
from holdfast.model.process import Process


def due_at(process: Process) -> float | None:
    """When its deadline wants something done; None when never, or when it has been done."""
    if not isinstance(process.state, Running) or process.deadline_told:
        return None
    return process.deadline_at


def due(processes: Iterable[Process], now: float) -> list[Process]:
    """Those whose deadline has passed and has not been acted upon."""
    return [process for process in processes if (at := due_at(process)) is not None and at <= now]


def next_due(processes: Iterable[Process]) -> float | None:
    """When there will be something to do; None when there is nothing to wait for."""
    return min((at for process in processes if (at := due_at(process)) is not None), default=None)
