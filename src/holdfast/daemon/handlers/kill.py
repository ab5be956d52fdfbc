"""kill: end trees, or send them a signal."""

from __future__ import annotations

import asyncio

from holdfast.daemon.core import ending
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.keeper_errors import to_error
from holdfast.errors import BadValue
from holdfast.model.ids import ProcessId
from holdfast.model.process import HeldProcess
from holdfast.ops.processes import Kill
from holdfast.places.keeper_link import Refused

_LONGEST_GRACE = 86400.0


async def handle(context: DaemonContext, call: Call, ask: Kill) -> Message:
    """Answers when the trees are gone, or after naming what will not go. Several are ended at the same time."""
    grace = context.settings.grace if ask.grace is None else min(ask.grace, _LONGEST_GRACE)
    targets = await _targets(context, call, ask)
    if ask.signal is not None:
        works = [_signal(context, process, ask.signal) for process in targets]
    else:
        works = [ending.end(context, process, call.session, "killed", grace) for process in targets]
    return {"results": await asyncio.gather(*works)}


async def _targets(context: DaemonContext, call: Call, ask: Kill) -> list[HeldProcess]:
    """The processes that are meant: named ones, or all living ones of a session, a task, or the instance."""
    session, task = context.current_name(ask.session), ask.task
    if sum((ask.processes is not None, session is not None, task is not None, ask.all)) != 1:
        raise BadValue("name processes, a session, a task or all of them: one of these")
    if ask.processes is not None:
        found = [context.registry.identify(name) for name in ask.processes]
        return list({process.id: process for process in found}.values())
    fitting = [
        process_id
        for process_id, process in context.registry.living.items()
        if call.sees(process.meta.session)
        and (ask.all or process.meta.session == session or (task is not None and process.meta.task == task))
    ]
    return [process for process_id in fitting if (process := await _started(context, process_id)) is not None]


async def _started(context: DaemonContext, process_id: ProcessId) -> HeldProcess | None:
    """One that is just being started is waited for; None when that came to nothing or is over."""
    process = context.registry.get(process_id)
    if process is not None and not process.is_running:
        async with context.supervisor.turn(process_id):
            process = context.registry.get(process_id)
    return process if process is not None and process.is_running else None


async def _signal(context: DaemonContext, process: HeldProcess, number: int) -> Message:
    if process.has_ended or process.is_waiting:
        return ending.result(context, process.id, sent=0 if process.is_waiting else None)
    try:
        answer = await context.keeper.request("signal", id=process.id, signal=number)
    except Refused as refused:
        if refused.code != "ended":
            raise to_error(refused) from refused
        await context.registry.wait_run_over(process.id, process.run)
        return ending.result(context, process.id)
    return ending.result(context, process.id, sent=answer["sent"])
