"""The findings of probes about a run: on disk and shown to waiting callers, then in the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.core.log import note
from holdfast.model.probes.readiness import Readiness
from holdfast.model.process import HeldProcess
from holdfast.records import replace

Change = Callable[[HeldProcess], HeldProcess]


async def settle(context: DaemonContext, process: HeldProcess, change: Change) -> HeldProcess | None:
    """The process after the change, on disk and shown; None when this run of it is over and nothing was changed."""
    return await context.supervisor.change(process.id, lambda now: change(now) if is_same_run(now, process) else None)


Finding = Literal["ready", "not-ready", "stalled", "stall-over", "input-needed"]


def log(finding: Finding, process: HeldProcess, **data: object) -> None:
    """Log a finding after it is on disk."""
    note(finding, process=process.id, **{key: value for key, value in data.items() if value is not None})


def is_same_run(now: HeldProcess, process: HeldProcess) -> bool:
    """Whether it still is the same run."""
    return now.is_up and now.started_at == process.started_at


def show_trouble(context: DaemonContext, process: HeldProcess, trouble: str) -> None:
    """Show what keeps a run from being ready."""
    _update(context, process, lambda mark: replace(mark, trouble=trouble))


def show_searched(context: DaemonContext, process: HeldProcess, stream: str, upto: int) -> None:
    """Remember how far a stream was searched in vain."""
    _update(context, process, lambda mark: replace(mark, searched={**mark.searched, stream: upto}))


def _update(context: DaemonContext, process: HeldProcess, change: Callable[[Readiness], Readiness]) -> None:
    """Show a change whose row is written later: no caller waits for it."""
    now = context.registry.get(process.id)
    if now is None or not is_same_run(now, process):
        return
    mark = now.readiness_now or Readiness(now.started_at or 0.0)
    if (changed := change(mark)) != mark:
        context.supervisor.show(replace(now, readiness=changed))
