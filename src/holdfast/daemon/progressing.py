"""Progress: every so often the owner of a process is told what it has written since the last time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import replace
from typing import Any

from holdfast.daemon import output
from holdfast.daemon.logbook import note
from holdfast.daemon.room import Room
from holdfast.daemon.tails import tail_of
from holdfast.errors import HoldfastError
from holdfast.model import notices, progress
from holdfast.model.happenings import queued
from holdfast.model.ids import ProcessId
from holdfast.model.process import Process
from holdfast.model.progress import News
from holdfast.places.keeper_link import Refused

#: The wall clock may be set while we sleep.
_LONGEST_SLEEP = 30.0


async def watch_progress(room: Room) -> None:
    """Look at each process that asked for it when it is time, for ever."""
    changed = asyncio.Event()
    room.registry.listen(lambda process: changed.set() if _wants(process) else None)
    while True:
        changed.clear()
        dues = {process.id: _begun(process) for process in room.registry.running() if _wants(process)}
        now = time.time()
        for process_id, due in dues.items():
            if due <= now:
                await _look(room, process_id)
        later = [due for due in dues.values() if due > now]
        pause = min([_LONGEST_SLEEP, *(max(0.0, due - time.time()) for due in later)])
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause if len(later) == len(dues) else 0):
                await changed.wait()


def _wants(process: Process) -> bool:
    return process.meta.check_interval is not None and process.is_up


def _begun(process: Process) -> float:
    """When the next look is due."""
    if process.progress is not None:
        return process.progress.next_at
    return (process.started_at or 0.0) + (process.meta.check_interval or 0.0)


async def _look(room: Room, process_id: ProcessId) -> None:
    async with room.supervisor.turn(process_id):
        process = room.registry.get(process_id)
        if process is None or not _wants(process):
            return
        try:
            ends = await output.ends(room, process)
        except (HoldfastError, Refused):
            ends = {}
        interval, now = process.meta.check_interval or 0.0, time.time()
        before = process.progress or progress.begin(_begun(process) - interval, interval)
        after, news = progress.looked(before, ends, now, interval)
        process = replace(process, progress=after)
        notice = None
        if news is not None:
            data = await _told(room, process, news, now)
            notice = notices.of_process(process, "progress", f"progress:{data['end']}", now, data)
        try:
            await room.store.save(process, queued(notice))
        except HoldfastError as failed:
            note("notice-late", process=process_id, why=failed.message)
        room.registry.put(process)


async def _told(room: Room, process: Process, news: News, now: float) -> dict[str, Any]:
    spans = news.spans
    tail = await tail_of(room, process, {name: span.end for name, span in spans.items()}, _starts(process, news))
    return {
        "output": tail.text,
        "output_cut": tail.is_cut,
        "new_bytes": news.new_bytes,
        "offset": min(span.offset for span in spans.values()),
        "end": sum(span.end for span in spans.values()),
        "running_for": now - (process.started_at or now),
    }


def _starts(process: Process, news: News) -> dict[str, int]:
    """Of a stream without news, nothing is shown."""
    return {name: news.spans[name].offset if name in news.spans else 1 << 62 for name in process.meta.streams}
