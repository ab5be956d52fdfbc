"""The readiness of a run, when it is probed, and why it was not reached. `HeldProcess.is_ready` is the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from holdfast.records import Struct, field

if TYPE_CHECKING:
    from holdfast.model.process import HeldProcess

ReadinessKind: TypeAlias = Literal["log", "port", "http", "uptime"]

KINDS: tuple[ReadinessKind, ...] = ("log", "port", "http", "uptime")

#: Seconds between two probes: short at first, for processes that are ready at once. With the duration of a probe it
#: stays below 50 ms.
_FIRST_PAUSE = 0.010
_LONGEST_PAUSE = 0.030
_GROWTH = 1.25
_STEPS = 6


class Readiness(Struct, frozen=True):
    """The readiness of one run of a process. `run` is the start time of that run."""

    run: float
    ready: bool | None = None
    """False once it cannot become ready any more; None while it is unknown."""
    at: float | None = None
    """Since when it is ready."""
    trouble: str | None = None
    """Why it is not ready, as far as that is known."""
    searched: dict[str, int] = field(default_factory=dict)
    """For each stream, the offset up to which the pattern was not found: an interrupted search continues there."""


def is_open(process: HeldProcess) -> bool:
    """Whether to probe: it runs, and its readiness is unknown."""
    return process.is_up and process.meta.readiness_kind is not None and process.is_ready is None


def gives_up_at(process: HeldProcess) -> float | None:
    """When its readiness timeout is over; None without a timeout."""
    return _after_start(process, process.meta.ready_timeout)


def uptime_reached_at(process: HeldProcess) -> float | None:
    """When it has run for `ready_uptime`; None without that rule."""
    return _after_start(process, process.meta.ready_uptime)


def too_late(seconds: float, trouble: str | None) -> str:
    return f"not ready within {seconds:g} s" + (f": {trouble}" if trouble else "")


def held_by_another(port: int, pid: int | None) -> str:
    holder = f"pid {pid} of another program" if pid is not None else "another program"
    return f"port {port} is held by {holder}"


def not_listening(port: int) -> str:
    return f"nothing of it listens on port {port}"


def pause(attempt: int) -> float:
    """How long to wait after the attempt with this number, counted from 0."""
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * _GROWTH ** min(attempt, _STEPS))


def _after_start(process: HeldProcess, seconds: float | None) -> float | None:
    started_at = process.started_at
    return None if seconds is None or started_at is None else started_at + seconds
