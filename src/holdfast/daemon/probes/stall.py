"""One run of one process, watched for stalls for as long as it lives."""

from __future__ import annotations

import asyncio
import time

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.probes import marks
from holdfast.daemon.probes.marks import is_same_run, settle
from holdfast.errors import Unreachable
from holdfast.model.probes import stalls
from holdfast.model.probes.stalls import ActivitySample, Stall, StallWatch
from holdfast.model.process import HeldProcess
from holdfast.places.base import Refused
from holdfast.records import replace


async def watch_stalls(context: DaemonContext, process: HeldProcess) -> None:
    """Returns when the run is over."""
    limit = process.meta.stall or 0.0
    mark = stalls.mark_of(process)
    watch = stalls.resumed(mark, limit, time.monotonic()) if mark is not None else None
    while (now := context.registry.get(process.id)) is not None and is_same_run(now, process):
        sample = await _sample(context, now)
        if sample is not None:
            watch = StallWatch.begin(sample) if watch is None else stalls.observe(watch, sample)
            await _judge(context, now, watch, limit)
        await asyncio.sleep(stalls.pause(limit))


async def _judge(context: DaemonContext, process: HeldProcess, watch: StallWatch, limit: float) -> None:
    """One mark for each episode, removed when the episode is over."""
    is_stalled, was_stalled = stalls.is_stalled(watch, limit), stalls.mark_of(process) is not None
    if is_stalled and not was_stalled:
        stall = await _describe(context, process, watch)
        if await settle(context, process, lambda now: replace(now, stall=stall)):
            marks.log(
                "stalled", process, since=round(stall.since, 3), last_output_at=stall.last_output_at, wait=stall.wait
            )
    elif was_stalled and not is_stalled and await settle(context, process, lambda now: replace(now, stall=None)):
        marks.log("stall-over", process)


async def _describe(context: DaemonContext, process: HeldProcess, watch: StallWatch) -> Stall:
    return Stall(
        run=process.started_at or 0.0,
        since=time.time() - (time.monotonic() - watch.active.at),
        output_bytes=watch.last.output_bytes,
        cpu_seconds=watch.last.cpu_seconds,
        last_output_at=await context.read(context.place_of(process).last_output_at, process),
        wait=await context.place_of(process).wait_state(process.pid or 0),
    )


async def _sample(context: DaemonContext, process: HeldProcess) -> ActivitySample | None:
    """How much the run wrote and worked up to now; None when that is unknown."""
    try:
        done = await context.place_of(process).activity(process)
    except (Refused, Unreachable, OSError):
        return None
    return ActivitySample(time.monotonic(), *done)
