"""Waiting for processes to become ready."""

from __future__ import annotations

from holdfast.daemon.core.context import DaemonContext
from holdfast.errors import NotNow
from holdfast.model import readiness
from holdfast.model.ids import ProcessId


async def until_settled(context: DaemonContext, ids: list[ProcessId], need: int) -> list[ProcessId]:
    """Those that are settled, once these are as many as needed. Raises NotNow for one that has no way to be ready."""
    for process_id in ids:
        process = context.registry.get(process_id)
        if process is not None and not process.has_ended and readiness.kind_of(process.meta) is None:
            raise NotNow(f"{process_id} has nothing to be ready by", next="start it with --ready-port N or another")
    with context.registry.watching(ids) as changed:
        while len(done := settled(context, ids)) < need:
            await changed.wait()
            changed.clear()
        return done


def settled(context: DaemonContext, ids: list[ProcessId]) -> list[ProcessId]:
    """Those that are ready, then those that cannot become ready any more, as what has ended or is forgotten."""
    known = {process_id: _is_ready(context, process_id) for process_id in ids}
    return sorted((process_id for process_id in ids if known[process_id] is not None), key=lambda one: not known[one])


def _is_ready(context: DaemonContext, process_id: ProcessId) -> bool | None:
    process = context.registry.get(process_id)
    return False if process is None or process.has_ended else readiness.is_ready(process)
