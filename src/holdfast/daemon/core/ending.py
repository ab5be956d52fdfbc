"""Ending a process, and removing one that has ended: every request, timer and rule comes here."""

from __future__ import annotations

import asyncio
import signal
import time

from holdfast.daemon.core import queues
from holdfast.daemon.core.context import DaemonContext, Message
from holdfast.daemon.core.supervisor import applied, asker, run_of
from holdfast.daemon.notices.objects import keep_output
from holdfast.daemon.workers import sink_messages
from holdfast.errors import from_keeper
from holdfast.model.events import removed
from holdfast.model.lifecycle import StopAsked, StopReason, end_signal, exit_code, reason
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.places.keeper_link import Refused

#: A reply waits this long for the commit of the end, unless the disk hangs.
_COMMIT_TIMEOUT = 1.0
_COMMIT_PAUSE = 0.01


async def end(context: DaemonContext, process: HeldProcess, by: str | None, why: StopReason, grace: float) -> Message:
    """End the whole tree: SIGTERM, and SIGKILL after the grace period. The result when it is gone, or does not die.

    Of a process that has ended, its leftover descendants are ended. A process that waits for its next run is not run
    again, and neither is one that ends by itself at this moment.
    """
    process = context.registry.get(process.id) or process
    if process.is_queued and (withdrawn := await _withdrawn(context, process.id, by, why)) is not None:
        return {**result(withdrawn, process.id, forced=False), "queue": process.meta.queue}
    stop = {
        "id": process.id,
        "by": asker(by),
        "reason": why,
        "signal": int(signal.SIGTERM),
        "grace": grace,
        "late": why != "restart" and not process.has_ended,
    }
    if grace > 0 and context.stop_commands.concerns(process):
        await _run_stop_command(context, process, by, why, stop)
    context.supervisor.stop_asked(process.id, by, why)
    try:
        answer = await context.keeper_of(process).request("stop", **stop)
    except Refused as refused:
        if refused.code != "not_found":
            raise from_keeper(refused.code, refused.message) from refused
        await context.supervisor.lose(process.id)
        return result(context.registry.get(process.id), process.id)
    known = await _apply(context, process.id, answer["report"])
    if answer["forced"]:
        context.supervisor.force_used(process.id)
    return result(known, process.id, answer["forced"], answer["survivors"])


async def _withdrawn(
    context: DaemonContext, process_id: ProcessId, by: str | None, why: StopReason
) -> HeldProcess | None:
    """The process that is not started any more; None if it was started or removed before."""
    async with context.supervisor.turn(process_id):
        process = context.registry.get(process_id)
        if process is None or not process.is_queued:
            return None
        await queues.withdraw(context, process, StopAsked(by, why, time.time()))
        return context.registry.get(process_id)


async def _apply(context: DaemonContext, process_id: ProcessId, report: Message | None) -> HeldProcess | None:
    """The process after a report, which is committed then. A disk that hangs delays no reply: the end is in
    the bundle, too, so the process is given as it will be committed.
    """
    if report is None:
        return context.registry.get(process_id)
    taken = context.background.start(context.supervisor.take(report), "ended")
    until = time.monotonic() + _COMMIT_TIMEOUT
    while not taken.done() and not context.store.hangs and time.monotonic() < until:
        await asyncio.wait({taken}, timeout=_COMMIT_PAUSE)
    known = context.registry.get(process_id)
    if taken.done():
        taken.result()
    elif known is not None and not known.has_ended and run_of(report) == known.run:
        return applied(known, report)
    return known


async def _run_stop_command(
    context: DaemonContext, process: HeldProcess, by: str | None, why: StopReason, stop: Message
) -> None:
    """The keeper has recorded the stop before, and carries it out if this daemon dies meanwhile."""
    grace = stop["grace"]
    recorded = context.keeper_of(process).begin("stop", **stop, quiet=grace)
    recorded.add_done_callback(lambda answer: answer.cancelled() or answer.exception())
    command = context.stop_commands.begin(process, grace)
    context.supervisor.stop_asked(process.id, by, why)
    await asyncio.wait({command}, timeout=grace)
    recorded.cancel()


def result(
    process: HeldProcess | None,
    process_id: ProcessId,
    forced: bool | None = None,
    survivors: list[int] | None = None,
    sent: int | None = None,
) -> Message:
    """The state of a process after a signal or an end, as `kill` replies it."""
    state = process.state if process is not None else None
    is_alive = bool(survivors) or (process is not None and process.is_active)
    return {
        "id": process_id,
        "status": "running" if is_alive else "ended",
        "reason": reason(state) if state is not None else None,
        "forced": forced,
        "survivors": survivors or [],
        "exit_code": exit_code(state) if state is not None else None,
        "signal": end_signal(state) if state is not None else None,
        "sent": sent,
        "queue": None,
    }


async def forget(context: DaemonContext, process_id: ProcessId, by: str | None = None) -> None:
    """Remove a process that has ended, with its log. `by`: who asked for it; None where its time was over.

    Raises NotNow while a descendant still writes to its output.
    """
    async with context.supervisor.turn(process_id):
        await keep_output(context, process_id)
        await sink_messages.keep_output(context, process_id)
        try:
            if (process := context.registry.get(process_id)) is not None:
                await context.places.forget(process)
        except Refused as refused:
            raise from_keeper(refused.code, refused.message) from refused
        happened = [removed(process, by, time.time())] if process is not None else []
        await context.store.remove(process_id, happened)
        context.registry.drop(process_id)
        context.inputs.forget(process_id)
        context.stop_commands.forget(process_id)
        context.input_readers.forget(process_id)
        await context.screens.forget(process_id)
