"""Whether and when a process whose run is over is run again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from holdfast.model.lifecycle import Ended, Exited, Lost, NeverRan, Waiting
from holdfast.model.process import HeldProcess, Meta

#: No pause is longer, unless the first one is.
LONGEST_PAUSE = 60.0
#: A run that lasted for this long, and for longer than the pause before it, ends a row of restarts.
WELL_AFTER = 10.0


class RestartVerdict(NamedTuple):
    """What follows from an end."""

    due: float | None = None
    """When it is run again; None for never."""
    streak: int = 0
    """Which restart in a row that is, or would have been."""
    gave_up: bool = False
    """Whether it would have been run again, if that had not happened too often."""


def after_end(meta: Meta, ended: Ended, streak: int) -> RestartVerdict:
    """After a run that was started as the `streak`th restart in a row. What was ended by request stays ended."""
    if ended.stop is not None:
        return RestartVerdict(ended.known_at) if ended.stop.reason == "restart" else RestartVerdict()
    if not _wants_again(meta, ended):
        return RestartVerdict()
    return _next(meta, 0 if _went_well(meta, ended, streak) else streak, ended.known_at)


def after_failed_launch(meta: Meta, streak: int, now: float) -> RestartVerdict:
    """After the `streak`th restart in a row could not be started. One that was asked for by hand is not tried again."""
    return RestartVerdict() if meta.restart == "never" else _next(meta, streak, now)


def pause(meta: Meta, streak: int) -> float:
    """How long to wait after so many restarts in a row."""
    return float(min(meta.restart_delay * 2 ** min(streak, 64), max(LONGEST_PAUSE, meta.restart_delay)))


def due(processes: Iterable[HeldProcess], now: float) -> list[HeldProcess]:
    """Those whose time has come."""
    return [process for process in processes if isinstance(process.state, Waiting) and process.state.due <= now]


def next_due(processes: Iterable[HeldProcess]) -> float | None:
    """When there will be something to do; None when there is nothing to wait for."""
    return min((process.state.due for process in processes if isinstance(process.state, Waiting)), default=None)


def may_run_again(process: HeldProcess) -> bool:
    """Whether its output may go on after the end of this run."""
    if process.has_ended:
        return False
    return process.is_waiting or process.meta.restart != "never" or _is_restarting(process)


def _is_restarting(process: HeldProcess) -> bool:
    stop = getattr(process.state, "stop", None)
    return stop is not None and stop.reason == "restart"


def _wants_again(meta: Meta, ended: Ended) -> bool:
    if isinstance(ended.outcome, (Lost, NeverRan)):
        return False
    return meta.restart == "always" or (meta.restart == "on-failure" and not _succeeded(meta, ended))


def _succeeded(meta: Meta, ended: Ended) -> bool:
    return isinstance(ended.outcome, Exited) and ended.outcome.code in meta.success_codes


def _went_well(meta: Meta, ended: Ended, streak: int) -> bool:
    began = ended.started_at
    lasted = ended.known_at - began if began is not None else 0.0
    return lasted >= max(WELL_AFTER, pause(meta, streak - 1) if streak else 0.0)


def _next(meta: Meta, streak: int, at: float) -> RestartVerdict:
    if meta.restart_limit and streak >= meta.restart_limit:
        return RestartVerdict(None, streak, gave_up=True)
    return RestartVerdict(at + pause(meta, streak), streak + 1)
