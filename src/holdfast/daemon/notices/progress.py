"""New output, published by the clock: progress notifications to the owner session, and samples to followers."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.core.tasks import pause
from holdfast.daemon.streams import output
from holdfast.daemon.streams.tails import tail_of
from holdfast.errors import HoldfastError
from holdfast.model.events import of_process, output_sample, queued
from holdfast.model.notices import progress
from holdfast.model.notices.progress import NewOutput
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.places.keeper_link import Refused
from holdfast.records import replace

#: The wall clock may be set during a sleep.
_LONGEST_SLEEP = 30.0
OUTPUT = "process.output"
#: Seconds between two samples of the output of all processes.
_SAMPLE_INTERVAL = 1.0


async def watch_progress(context: DaemonContext) -> None:
    """Look at each process that has a `check_interval` when it is due, for ever."""
    changed = asyncio.Event()
    context.registry.listen(lambda process: changed.set() if _has_interval(process) else None, "check_interval")
    while True:
        changed.clear()
        dues = {process.id: _due(process) for process in context.registry.active() if _has_interval(process)}
        now = time.time()
        for process_id, due in dues.items():
            if due <= now:
                await _look(context, process_id)
        later = [due for due in dues.values() if due > now]
        seconds = min([_LONGEST_SLEEP, *(max(0.0, due - time.time()) for due in later)])
        await pause(seconds if len(later) == len(dues) else 0, unless=changed)


async def publish_output(context: DaemonContext) -> None:
    """While there is a follower, publish once a second which processes wrote something, for ever.

    The samples are transient: not kept, and without a number.
    """
    while True:
        await context.stream.until_followed(OUTPUT)
        known = await _ends(context)
        while context.stream.is_followed(OUTPUT):
            await asyncio.sleep(_SAMPLE_INTERVAL)
            now = await _ends(context)
            for process_id, ends in now.items():
                before = known.get(process_id, {})
                grown = {
                    name: {"offset": before.get(name, 0), "end": end}
                    for name, end in ends.items()
                    if end > before.get(name, 0)
                }
                process = context.registry.get(process_id)
                if grown and process is not None and process.is_up:
                    context.stream.publish_transient(OUTPUT, output_sample(process, grown))
            known = now or known  # nothing where it could not be measured in time


async def _ends(context: DaemonContext) -> dict[ProcessId, dict[str, int]]:
    measured = await context.sizes([process for process in context.registry.active() if process.is_up])
    return {one: {name: stream.end for name, stream in found.streams.items()} for one, found in measured.items()}


def _has_interval(process: HeldProcess) -> bool:
    return process.meta.check_interval is not None and process.is_up


def _due(process: HeldProcess) -> float:
    """When the next look is due."""
    if process.progress is not None:
        return process.progress.next_at
    return (process.started_at or 0.0) + (process.meta.check_interval or 0.0)


async def _look(context: DaemonContext, process_id: ProcessId) -> None:
    async with context.supervisor.turn(process_id):
        process = context.registry.get(process_id)
        if process is None or not _has_interval(process):
            return
        try:
            ends = await output.ends(context, process)
        except (HoldfastError, Refused):
            ends = {}
        interval, now = process.meta.check_interval or 0.0, time.time()
        before = process.progress or progress.begin(_due(process) - interval, interval)
        after, new = progress.checked(before, ends, now, interval)
        process = replace(process, progress=after)
        notice = None
        if new is not None:
            data = await _data(context, process, new, now)
            notice = of_process(process, "progress", f"progress:{data['end']}", now, data)
        await context.supervisor.commit(process, queued(notice))


async def _data(context: DaemonContext, process: HeldProcess, new: NewOutput, now: float) -> dict[str, Any]:
    spans = new.spans
    tail = await tail_of(context, process, {name: span.end for name, span in spans.items()}, _starts(process, new))
    return {
        "output": tail.text,
        "output_cut": tail.is_cut,
        "new_bytes": new.new_bytes,
        "offset": min(span.offset for span in spans.values()),
        "end": sum(span.end for span in spans.values()),
        "running_for": now - (process.started_at or now),
    }


def _starts(process: HeldProcess, new: NewOutput) -> dict[str, int]:
    """Where the tail begins. A stream without new output is left out."""
    return {name: new.spans[name].offset if name in new.spans else 1 << 62 for name in process.meta.streams}
