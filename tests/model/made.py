"""Processes as tests need them."""

from __future__ import annotations

from typing import Any

from holdfast.model.lifecycle import Ended, Exited, Running, State
from holdfast.model.process import HeldProcess, Meta, ProcessId, StreamExtent


def process(number: int = 1, state: State | None = None, closed: bool = True, **meta: Any) -> HeldProcess:
    """A running process, or one in the given state."""
    fields: dict[str, Any] = {
        "command": "sleep 60",
        "argv": ("sleep", "60"),
        "cwd": "/",
        "session": "s",
        "requested_at": float(number),
        **meta,
    }
    known = Meta(ProcessId(f"proc_{number:012x}"), **fields)
    now = state if state is not None else Running(1000 + number, known.requested_at)
    return HeldProcess(known, now, streams={"out": StreamExtent(closed=closed)})


def ended(number: int, at: float, **more: Any) -> HeldProcess:
    return process(number, Ended(Exited(0), at, 1000 + number, at - 1, at), **more)
