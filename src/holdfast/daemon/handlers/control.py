"""kill, restart, remove, transfer: operations that end, repeat, delete or hand over processes."""

from __future__ import annotations

import asyncio

from holdfast.daemon.approvals import commands
from holdfast.daemon.core import ending, restarting
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.errors import BadValue, NotFound, NotNow, from_keeper
from holdfast.model.lifecycle import Requested
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.ops.processes import Kill, Remove, Restart, Transfer
from holdfast.places.keeper_link import Refused

_LONGEST_GRACE = 86400.0


async def kill(context: DaemonContext, call: Call, ask: Kill) -> Message:
    """Replies when the trees are gone, with the pids that do not die. Several processes are ended at the same time."""
    targets = await _targets(context, call, ask)
    if ask.signal is not None:
        waiting = next((process for process in targets if process.is_queued), None)
        if waiting is not None:
            raise NotNow(f"{waiting.id} waits to be started", next=f"holdfast why {waiting.id}")
        works = [_signal(context, process, ask.signal) for process in targets]
    else:
        grace = _grace(context, ask.grace)
        works = [
            ending.end(context, process, call.ended_by(process.meta.session), "killed", grace) for process in targets
        ]
    results = await asyncio.gather(*works)
    return {
        "results": [
            {**result, "already_ended": process.has_ended} for process, result in zip(targets, results, strict=True)
        ]
    }


async def restart(context: DaemonContext, call: Call, ask: Restart) -> Message:
    """Replies when it runs again, with the same id and spec. Repeated with the same `run`, it is the same restart."""
    process = context.registry.identify(ask.process)
    async with commands.restarting(context, call, ask, process, ask.run):
        by = call.ended_by(process.meta.session)
        process = await restarting.restart(context, process, by, ask.run, _grace(context, ask.grace))
    return {"process": context.show(process)}


async def remove(context: DaemonContext, call: Call, ask: Remove) -> Message:
    """Replies when they are gone from disk. If one of them still runs, none is removed."""
    if ask.all:
        return {"removed": await _remove_all(context, call, ask)}
    if not ask.processes:
        raise BadValue("remove which process?", next="holdfast ps -a")
    processes = {process.id: process for process in map(context.registry.identify, ask.processes)}
    awaited = context.queues.awaited()
    for process in processes.values():
        if not process.has_ended:
            state = "waits to be started" if process.is_queued else "still runs"
            raise NotNow(f"{process.id} {state}", next=f"holdfast kill {process.id}")
        if process.id in awaited:
            raise NotNow(f"another process waits for the result of {process.id}", next="holdfast queue")
    for process_id in processes:
        await ending.forget(context, process_id, call.by)
    return {"removed": list(processes)}


async def _remove_all(context: DaemonContext, call: Call, ask: Remove) -> list[ProcessId]:
    """The ids of those that were removed: all ended ones that the caller sees, and that nothing writes to any more."""
    if ask.processes:
        raise BadValue("name processes, or all of them: one of these")
    removed = []
    for process in list(context.registry.all.values()):
        if process.has_ended and call.sees(process.meta.session):
            try:
                await ending.forget(context, process.id, call.by)
                removed.append(process.id)
            except (NotNow, NotFound):  # a descendant writes, or another caller has removed it or runs it again
                continue
    return removed


async def transfer(context: DaemonContext, call: Call, ask: Transfer) -> Message:
    """Replies when the other session owns the process and its pending notices, on disk."""
    process = context.registry.identify(ask.process)
    if ask.to is None:
        raise BadValue("transfer it to which session?", next="holdfast transfer ID SESSION")
    notices = await context.sessions.transfer([process.id], ask.to)
    return {"process": context.show(context.registry.get(process.id) or process), "notifications": notices}


def _grace(context: DaemonContext, asked: float | None) -> float:
    return context.settings.grace if asked is None else min(asked, _LONGEST_GRACE)


async def _targets(context: DaemonContext, call: Call, ask: Kill) -> list[HeldProcess]:
    """The named processes, or all of a session, a task, or the instance that live or have left something running."""
    session = context.current_name(ask.session)
    if sum((ask.processes is not None, session is not None, ask.task is not None, ask.all)) != 1:
        raise BadValue("name processes, a session, a task or all of them: one of these")
    if ask.processes is not None:
        for process_id in map(ProcessId, ask.processes):
            named = context.registry.get(process_id)
            if named is not None and isinstance(named.state, Requested):
                await _started(context, process_id)
        found = [context.registry.identify(name) for name in ask.processes]
        return list({process.id: process for process in found}.values())
    fitting = context.registry.living_of(session, ask.task, ask.all)
    ids = [process.id for process in fitting if call.sees(process.meta.session)]
    living = [process for process_id in ids if (process := await _started(context, process_id)) is not None]
    if ask.signal is not None:
        return [process for process in living if not process.is_queued]
    return [*living, *await _with_leftovers(context, call, session, ask)]


async def _with_leftovers(context: DaemonContext, call: Call, session: str | None, ask: Kill) -> list[HeldProcess]:
    """Processes that have ended, and of which descendants still live."""
    ended = [
        process
        for process in context.registry.all.values()
        if process.has_ended
        and process.leftovers
        and (ask.all or process.meta.session == session or (ask.task is not None and process.meta.task == ask.task))
        and call.sees(process.meta.session)
    ]
    alive = lambda: [process for process in ended if context.place_of(process).living(process.leftovers)]  # noqa: E731
    return await asyncio.to_thread(alive) if ended else []


async def _started(context: DaemonContext, process_id: ProcessId) -> HeldProcess | None:
    """A process that is being started is waited for; None when that failed or it has ended."""
    process = context.registry.get(process_id)
    if process is not None and not process.is_active:
        async with context.supervisor.turn(process_id):
            process = context.registry.get(process_id)
    return process if process is not None and process.is_active else None


async def _signal(context: DaemonContext, process: HeldProcess, number: int) -> Message:
    if not process.is_up:
        return ending.result(context.registry.get(process.id), process.id, sent=None if process.has_ended else 0)
    try:
        answer = await context.keeper_of(process).request("signal", id=process.id, signal=number)
    except Refused as refused:
        if refused.code != "ended":
            raise from_keeper(refused.code, refused.message) from refused
        await context.registry.wait_run_over(process.id, process.run)
        return ending.result(context.registry.get(process.id), process.id)
    return ending.result(context.registry.get(process.id), process.id, sent=answer["sent"])
