"""When a process counts as ready, and when it will not be any more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from holdfast.model.process import HeldProcess, Meta

Kind: TypeAlias = Literal["log", "port", "http", "uptime"]

KINDS: tuple[Kind, ...] = ("log", "port", "http", "uptime")

#: Between two looks: short at first, for what is ready at once, and never so long that anybody would notice. A look
#: takes some time as well, and both together stay below 50 ms.
_FIRST_PAUSE = 0.010
_LONGEST_PAUSE = 0.030
_GROWTH = 1.25
_STEPS = 6


@dataclass(frozen=True, slots=True)
class Readiness:
    """What is known of one run of a process, which is named by its start."""

    run: float
    ready: bool | None = None
    """False once it will not be any more; None as long as it is unknown."""
    at: float | None = None
    """Since when it is ready."""
    trouble: str | None = None
    """What keeps it from being ready, as far as that can be seen."""
    searched: dict[str, int] = field(default_factory=dict)
    """For each stream, up to which byte its pattern is not in it: a search that was interrupted goes on there."""


def kind_of(meta: Meta) -> Kind | None:
    """What makes the process ready; None when it has nothing to be ready by."""
    return next((kind for kind in KINDS if getattr(meta, f"ready_{kind}") is not None), None)


def mark_of(process: HeldProcess) -> Readiness | None:
    """What is known of this run, or of the last one; of another it counts for nothing."""
    mark = process.readiness
    return mark if mark is not None and mark.run == process.started_at else None


def is_ready(process: HeldProcess) -> bool | None:
    """None: nothing to be ready by, or not known yet. False: it will not be any more, as what has ended."""
    if kind_of(process.meta) is None:
        return None
    if process.has_ended:
        return False
    mark = mark_of(process)
    return mark.ready if mark is not None and process.is_up else None


def is_open(process: HeldProcess) -> bool:
    """Whether to probe: it runs, and it is not known whether it is ready."""
    return process.is_up and kind_of(process.meta) is not None and is_ready(process) is None


def gives_up_at(process: HeldProcess) -> float | None:
    """From when on it is too late to become ready; None when it never is."""
    return _after_start(process, process.meta.ready_timeout)


def grown_at(process: HeldProcess) -> float | None:
    """When it has been up for long enough; None where that is not asked for."""
    return _after_start(process, process.meta.ready_uptime)


def too_late(seconds: float, trouble: str | None) -> str:
    return f"not ready within {seconds:g} s" + (f": {trouble}" if trouble else "")


def held_by_another(port: int, pid: int | None) -> str:
    holder = f"pid {pid} of another program" if pid is not None else "another program"
    return f"port {port} is held by {holder}"


def nobody_listens(port: int) -> str:
    return f"nothing of it listens on port {port}"


def pause(attempt: int) -> float:
    """How long to wait after the attempt with this number, counted from 0."""
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * _GROWTH ** min(attempt, _STEPS))


def _after_start(process: HeldProcess, seconds: float | None) -> float | None:
    started_at = process.started_at
    return None if seconds is None or started_at is None else started_at + seconds
