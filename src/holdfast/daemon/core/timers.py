"""Timers: deadlines, restarts, and removing what is old."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from holdfast.daemon.core import log, restarting
from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.core.ending import end, forget
from holdfast.daemon.core.log import note
from holdfast.daemon.core.tasks import pause
from holdfast.errors import HoldfastError
from holdfast.model import process_rules
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.records import replace
from holdfast.settings import KEEP_ENDED_FLOOR

#: The wall clock may be set during a sleep, so no sleep is longer than this.
_LONGEST_SLEEP = 30.0
_RETENTION_PAUSE = 60.0


async def watch_deadlines(context: DaemonContext) -> None:
    """Act on every deadline when it passes, for ever."""
    while True:
        context.deadlines_changed.clear()
        for process in process_rules.deadlines_due(context.registry.living.values(), time.time()):
            _act(context, process)
        await _until(process_rules.next_deadline(context.registry.living.values()), context.deadlines_changed)


async def _until(due: float | None, changed: asyncio.Event) -> None:
    seconds = _LONGEST_SLEEP if due is None else min(_LONGEST_SLEEP, max(0.0, due - time.time()))
    await pause(seconds, unless=changed)


async def watch_restarts(context: DaemonContext) -> None:
    """Run processes again when their restart is due, until the daemon is to stop."""
    under_way: set[ProcessId] = set()
    while not context.stop_asked.is_set():
        context.supervisor.restarts_changed.clear()
        now = time.time()
        for process in process_rules.restarts_due(context.registry.living.values(), now):
            if process.id not in under_way:
                under_way.add(process.id)
                task = context.background.start(restarting.when_due(context, process.id), "restart")
                task.add_done_callback(partial(_restarted, context, under_way, process.id))
        later = [process for process in context.registry.living.values() if process.id not in under_way]
        await _until(process_rules.next_restart(later), context.supervisor.restarts_changed)


def _restarted(context: DaemonContext, under_way: set[ProcessId], process_id: ProcessId, _: object) -> None:
    under_way.discard(process_id)
    context.supervisor.restarts_changed.set()


def _act(context: DaemonContext, process: HeldProcess) -> None:
    """Once for each: after this the process is stopping, or its deadline is marked as notified."""
    note("deadline", process=process.id, action=process.meta.deadline_action)
    if process.meta.deadline_action == "notify":
        context.supervisor.show(replace(process, deadline_notified=True))
        return
    context.supervisor.stop_asked(process.id, None, "deadline")
    context.background.start(end(context, process, None, "deadline", context.settings.grace), "deadline")


async def forget_old(context: DaemonContext) -> None:
    """Remove ended processes, notices, events and approvals that are older than the settings say, for ever."""
    keep = max(context.settings.keep_ended, KEEP_ENDED_FLOOR)
    while True:
        log.bound(context.paths.log)
        awaited = context.queues.awaited()
        ended = [one for one in context.registry.all.values() if one.has_ended and one.id not in awaited]
        for process_id in process_rules.may_be_forgotten(
            ended, time.time(), keep, context.settings.max_ended, KEEP_ENDED_FLOOR
        ):
            try:
                await forget(context, process_id)
            except HoldfastError as failed:
                note("not-forgotten", process=process_id, why=failed.message)
        context.sessions.reset_idle(time.time())
        context.inbox.forget(time.time() - context.settings.keep_events, time.time() - context.settings.keep_notices)
        context.store.forget_outgoing(time.time() - context.settings.keep_notices)
        context.approvals.forget(time.time() - context.settings.keep_events)
        context.store.forget_events(time.time() - context.settings.keep_events, context.settings.max_events)
        await asyncio.sleep(_RETENTION_PAUSE)
