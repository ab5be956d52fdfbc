"""Whether and when a process is restarted after a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from holdfast.model.lifecycle import Ended, Exited, Lost, NeverRan, Restarting, Skipped
from holdfast.model.process import HeldProcess, Meta

#: No pause is longer, unless `restart_delay` is.
LONGEST_PAUSE = 60.0
#: A run that lasted for this long, and for longer than the pause before it, resets the count of restarts in a row.
STABLE_AFTER = 10.0
_FIRST_DISK_PAUSE = 0.25
_LONGEST_DISK_PAUSE = 10.0


class RestartVerdict(NamedTuple):
    """The decision after an end."""

    due: float | None = None
    """When it is restarted; None for never."""
    streak: int = 0
    """Which restart in a row that is, or would have been."""
    gave_up: bool = False
    """Whether it is not restarted only because the limit was reached."""


def after_end(meta: Meta, ended: Ended, streak: int) -> RestartVerdict:
    """After a run that was the `streak`th restart in a row. A process that was ended by request is not restarted."""
    if ended.stop is not None:
        return RestartVerdict(ended.known_at) if ended.stop.reason == "restart" else RestartVerdict()
    if not _should_restart(meta, ended):
        return RestartVerdict()
    return _next(meta, 0 if _was_stable(meta, ended, streak) else streak, ended.known_at)


def after_failed_launch(meta: Meta, streak: int, now: float) -> RestartVerdict:
    """After the `streak`th restart in a row could not be started. A restart by request is not repeated."""
    return RestartVerdict() if meta.restart == "never" else _next(meta, streak, now)


def after_refused_by_disk(ended_at: float, now: float) -> float:
    """When it is tried again after the disk could not be written: the pauses double, without a count of attempts."""
    return now + min(max(now - ended_at, _FIRST_DISK_PAUSE), _LONGEST_DISK_PAUSE)


def pause(meta: Meta, streak: int) -> float:
    """Seconds to wait after `streak` restarts in a row."""
    return float(min(meta.restart_delay * 2 ** min(streak, 64), max(LONGEST_PAUSE, meta.restart_delay)))


def due(processes: Iterable[HeldProcess], now: float) -> list[HeldProcess]:
    """Processes whose restart is due."""
    return [process for process in processes if isinstance(process.state, Restarting) and process.state.due <= now]


def next_due(processes: Iterable[HeldProcess]) -> float | None:
    """When the next restart is due; None when there is none."""
    return min((process.state.due for process in processes if isinstance(process.state, Restarting)), default=None)


def may_run_again(process: HeldProcess) -> bool:
    """Whether there may be a further run, and so further output."""
    if process.has_ended:
        return False
    return process.is_restarting or process.meta.restart != "never" or _restart_requested(process)


def _restart_requested(process: HeldProcess) -> bool:
    stop = getattr(process.state, "stop", None)
    return stop is not None and stop.reason == "restart"


def _should_restart(meta: Meta, ended: Ended) -> bool:
    if isinstance(ended.outcome, (Lost, NeverRan, Skipped)):
        return False
    return meta.restart == "always" or (meta.restart == "on-failure" and not _succeeded(meta, ended))


def _succeeded(meta: Meta, ended: Ended) -> bool:
    return isinstance(ended.outcome, Exited) and ended.outcome.code in meta.success_codes


def _was_stable(meta: Meta, ended: Ended, streak: int) -> bool:
    began = ended.started_at
    lasted = ended.known_at - began if began is not None else 0.0
    return lasted >= max(STABLE_AFTER, pause(meta, streak - 1) if streak else 0.0)


def _next(meta: Meta, streak: int, at: float) -> RestartVerdict:
    if meta.restart_limit and streak >= meta.restart_limit:
        return RestartVerdict(None, streak, gave_up=True)
    return RestartVerdict(at + pause(meta, streak), streak + 1)
