"""One run of one process, until it is known whether it is ready."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.core.log import note
from holdfast.daemon.probes import marks
from holdfast.daemon.probes.http import until_answered
from holdfast.daemon.probes.marks import is_same_run, settle, show_trouble
from holdfast.daemon.probes.port import until_listening
from holdfast.errors import HoldfastError
from holdfast.model.probes import readiness
from holdfast.model.probes.readiness import Readiness
from holdfast.model.process import HeldProcess
from holdfast.records import replace

#: After a failure that has nothing to do with the process, as when there is no keeper.
_PAUSE_AFTER_FAILURE = 0.5
#: The wall clock may be set during a sleep: none is longer than this.
_LONGEST_SLEEP = 30.0


async def watch_readiness(context: DaemonContext, process: HeldProcess) -> None:
    """Returns when it is ready, has ended, or is too late to become ready."""
    probe = asyncio.ensure_future(_until_ready(context, process))
    over = asyncio.ensure_future(_until_over(context, process))
    late = asyncio.ensure_future(_until_late(process))
    works: set[asyncio.Future[Any]] = {probe, over, late}
    try:
        await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
        if over.done():
            marks.log("not-ready", process, why="it ended first")
        elif probe.done():
            probe.result()
            await _ready(context, process)
        else:
            await _too_late(context, process)
    finally:
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)


async def _ready(context: DaemonContext, process: HeldProcess) -> None:
    at = time.time()
    mark = Readiness(process.started_at or 0.0, True, at)
    if await settle(context, process, lambda now: replace(now, readiness=mark)):
        marks.log("ready", process, after=round(at - mark.run, 3))


async def _too_late(context: DaemonContext, process: HeldProcess) -> None:
    """It goes on running, and is marked as not ready."""

    def give_up(now: HeldProcess) -> HeldProcess:
        mark = now.readiness_now or Readiness(now.started_at or 0.0)
        trouble = readiness.too_late(process.meta.ready_timeout or 0.0, mark.trouble)
        return replace(now, readiness=replace(mark, ready=False, trouble=trouble))

    if (now := await settle(context, process, give_up)) and now.readiness:
        marks.log("not-ready", process, why=now.readiness.trouble)


async def _until_ready(context: DaemonContext, process: HeldProcess) -> None:
    while True:
        try:
            return await _probe(context, process)
        except (HoldfastError, OSError) as failed:
            note("probe-failed", process=process.id, why=str(failed))
            await asyncio.sleep(_PAUSE_AFTER_FAILURE)


async def _probe(context: DaemonContext, process: HeldProcess) -> None:
    meta = process.meta
    report = partial(show_trouble, context, process)
    if meta.ready_log is not None:
        from holdfast.daemon.probes.log import until_matched

        await until_matched(context, process, meta.ready_log)
    elif meta.ready_port is not None:
        await until_listening(context, process, meta.ready_port, report)
    elif meta.ready_http is not None:
        await until_answered(context, process, meta.ready_http, report)
    else:
        await _until_time(readiness.uptime_reached_at(process) or 0.0)


async def _until_over(context: DaemonContext, process: HeldProcess) -> None:
    await context.registry.until(
        [process.id], lambda: (now := context.registry.get(process.id)) is None or not is_same_run(now, process)
    )


async def _until_late(process: HeldProcess) -> None:
    due = readiness.gives_up_at(process)
    if due is None:
        await asyncio.get_running_loop().create_future()
        return
    await _until_time(due)


async def _until_time(due: float) -> None:
    """Until the wall clock shows this time or a later one."""
    while (left := due - time.time()) > 0:  # noqa: ASYNC110 - only the clock knows the time
        await asyncio.sleep(min(left, _LONGEST_SLEEP))
