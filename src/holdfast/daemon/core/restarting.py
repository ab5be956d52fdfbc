"""Running a process again: by its restart policy when it is due, or by request."""

from __future__ import annotations

import asyncio
import signal
import time

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.core.ending import end
from holdfast.daemon.core.log import note
from holdfast.errors import DiskFull, HoldfastError, NotFound, NotNow, Unreachable, from_keeper
from holdfast.model import process_rules
from holdfast.model.lifecycle import Ended, LaunchFailed, Restarting, RestartPlanned, advance, stop_of
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.places.keeper_link import Refused
from holdfast.records import replace

_RETRY_PAUSE = 0.5


async def restart(
    context: DaemonContext, process: HeldProcess, by: str | None, run: int | None, grace: float
) -> HeldProcess:
    """The process in its run `run` (the next one if None). A running one is ended first. Concurrent calls join.

    Raises NotNow when it does not die or was ended by another request meanwhile, StartFailed when it cannot be
    started any more.
    """
    began = time.time()
    if process.is_queued:
        raise NotNow(f"{process.id} waits to be started", next="holdfast queue")
    if process.has_ended and process.pid is None:
        raise NotNow(f"{process.id} was never started", next="start it anew: holdfast run")
    target = process.run + 1 if run is None else run
    if target > process.run + 1:
        raise NotNow(f"{process.id} was run again {process.run} times so far", next=f"holdfast inspect {process.id}")
    while process.run < target:
        if process.is_active and not process.is_restarting:
            result = await end(context, process, by, "restart", grace)
            if result["survivors"]:
                raise _will_not_die(process.id, result["survivors"])
        async with context.supervisor.turn(process.id):
            if (known := context.registry.get(process.id)) is None:
                raise NotFound(f"{process.id} was removed meanwhile")
            process = known
            if process.run >= target:
                break
            process = await _again_by_request(context, process, began)
    return process


async def when_due(context: DaemonContext, process_id: ProcessId) -> None:
    """Run it again, if it is still due. A failed attempt is repeated after a pause, or the process has given up."""
    async with context.supervisor.turn(process_id):
        process = context.registry.get(process_id)
        if process is None or not process_rules.restarts_due([process], time.time()):
            return
        try:
            await _again(context, process, _despite_stop(process))
            return
        except HoldfastError as failed:
            note("restart-failed", process=process_id, why=failed.message)
    await asyncio.sleep(_RETRY_PAUSE)  # without a keeper it stays due, and is tried again


def _despite_stop(process: HeldProcess) -> bool:
    """Whether a stop before the boot, as by the end of the daemon, does not count."""
    assert isinstance(process.state, Restarting)
    return process.boot_run == process.run + 1 and stop_of(process.state.last) is not None


async def _again_by_request(context: DaemonContext, process: HeldProcess, began: float) -> HeldProcess:
    """By request, in the turn of the process. The plan is on disk before the attempt."""
    if process.is_active and not process.is_restarting:
        raise NotNow(f"{process.id} does not die", next=f"holdfast kill {process.id}")
    despite_stop = False
    if isinstance(process.state, Ended):
        stop = stop_of(process.state)
        if stop is not None and stop.reason != "restart" and stop.at > began:
            raise NotNow(f"{process.id} was ended meanwhile", next=f"holdfast inspect {process.id}")
        despite_stop = stop is not None
        context.registry.check_limit(context.settings.max_processes)
        context.registry.check_name(process.meta, everywhere=False)
    state = advance(process.state, RestartPlanned(time.time()))
    process = replace(process, state=state, streak=0, gave_up=False)
    await context.supervisor.commit(process, needs_disk=True)
    return await _again(context, process, despite_stop)


async def _again(context: DaemonContext, process: HeldProcess, despite_stop: bool = False) -> HeldProcess:
    """One attempt, in the turn of the process. If it raises, the process is unchanged or waits for the next attempt."""
    try:
        async with context.places.using(context.place_of(process)):
            await _clear(context, process)
            report = await context.keeper_of(process).request(
                "rerun",
                id=process.id,
                run=process.run + 1,
                streak=process.streak,
                cols=process.cols,
                rows=process.rows,
                despite_stop=despite_stop,
            )
    except Refused as refused:
        if refused.code == "stopped":
            await context.supervisor.apply(process, await context.keeper_of(process).request("report", id=process.id))
        elif refused.code == DiskFull.code and process.meta.restart != "never":
            _put_off(context, process)
        else:
            await _failed(context, process)
        raise from_keeper(refused.code, refused.message) from refused
    except NotNow:
        await _failed(context, process)
        raise
    except Unreachable:
        context.supervisor.restarts_changed.set()  # it stays due, and is tried again
        raise
    context.inputs.forget(process.id)
    process = await context.supervisor.apply(process, report)
    if process.meta.deadline is not None:
        context.deadlines_changed.set()
    context.screens.watch(process)
    note("restarted", process=process.id, pid=process.pid, run=process.run)
    return process


async def _clear(context: DaemonContext, process: HeldProcess) -> None:
    """End the leftovers of the last run: there are never two runs at once."""
    answer = await context.keeper_of(process).request(
        "stop", id=process.id, by="", reason="restart", signal=int(signal.SIGTERM), grace=context.settings.grace
    )
    if answer["survivors"]:
        raise _will_not_die(process.id, answer["survivors"])


async def _failed(context: DaemonContext, process: HeldProcess) -> None:
    assert isinstance(process.state, Restarting)
    now = time.time()
    verdict = process_rules.after_failed_launch(process.meta, process.streak, now)
    state = advance(process.state, LaunchFailed(now))
    process = replace(process, state=state, streak=verdict.streak, gave_up=verdict.gave_up)
    if verdict.due is None:
        await context.supervisor.end(process)
    else:
        context.supervisor.wait_for_restart(replace(process, state=advance(state, RestartPlanned(verdict.due))))


def _put_off(context: DaemonContext, process: HeldProcess) -> None:
    """The disk cannot be written: that is not the fault of the process, so it does not count as a restart."""
    assert isinstance(process.state, Restarting)
    now = time.time()
    state = advance(process.state, LaunchFailed(now))
    due = process_rules.after_refused_by_disk(process.state.last.known_at, now)
    process = replace(process, state=advance(state, RestartPlanned(due)), trouble=DiskFull.code)
    context.supervisor.wait_for_restart(process)


def _will_not_die(process_id: ProcessId, pids: list[int]) -> NotNow:
    named = ", ".join(map(str, pids[:10]))
    return NotNow(f"what is left of {process_id} does not die: pid {named}", next=f"holdfast inspect {process_id}")
