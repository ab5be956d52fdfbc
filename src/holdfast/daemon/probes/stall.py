"""One run of one process, watched for stalls for as long as it lives."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace

from holdfast.daemon import reports
from holdfast.daemon.keeper_link import Refused
from holdfast.daemon.probes.marks import is_same_run, settle
from holdfast.daemon.probes.publish import publish
from holdfast.daemon.room import Room
from holdfast.errors import Unreachable
from holdfast.machine.cpu import cpu_seconds
from holdfast.model import stalls
from holdfast.model.process import Process
from holdfast.model.stalls import Sample, Stall, Watch
from holdfast_keeper import bundle


async def watch_stalls(room: Room, process: Process) -> None:
    """Returns when the run is over."""
    limit = process.meta.stall or 0.0
    mark = stalls.mark_of(process)
    watch = stalls.resumed(mark, limit, time.monotonic()) if mark is not None else None
    while (now := room.registry.get(process.id)) is not None and is_same_run(now, process):
        sample = await _sample(room, process)
        if sample is not None:
            watch = Watch.begin(sample) if watch is None else stalls.observe(watch, sample)
            await _judge(room, now, watch, limit)
        await asyncio.sleep(stalls.pause(limit))


async def _judge(room: Room, process: Process, watch: Watch, limit: float) -> None:
    """Raise one mark for each episode, and take it away when the episode is over."""
    is_stalled, was_stalled = stalls.is_stalled(watch, limit), stalls.mark_of(process) is not None
    if is_stalled and not was_stalled:
        stall = await _describe(room, process, watch)
        if await settle(room, process, lambda now: replace(now, stall=stall)):
            publish(
                "stalled", process, since=round(stall.since, 3), last_output_at=stall.last_output_at, wait=stall.wait
            )
    elif was_stalled and not is_stalled and await settle(room, process, lambda now: replace(now, stall=None)):
        publish("stall_over", process)


async def _describe(room: Room, process: Process, watch: Watch) -> Stall:
    return Stall(
        run=process.started_at or 0.0,
        since=time.time() - (time.monotonic() - watch.active.at),
        output_bytes=watch.last.output_bytes,
        cpu_seconds=watch.last.cpu_seconds,
        last_output_at=await room.read(_last_output_at, room.paths.place, process),
        wait=await asyncio.to_thread(_wait_state, process.pid or 0),
    )


async def _sample(room: Room, process: Process) -> Sample | None:
    """How much it wrote and worked up to now; None when that cannot be had."""
    try:
        report = await room.keeper.request("report", id=process.id)
        group = report["born"]["group"]
        pids = [] if group is not None else (await room.keeper.request("tree", id=process.id))["pids"]
    except (Refused, Unreachable):
        return None
    written = sum(stream.end for stream in reports.streams(report).values())
    return Sample(time.monotonic(), written, await asyncio.to_thread(cpu_seconds, pids, group))


def _last_output_at(place: str, process: Process) -> float | None:
    """When its log last grew; None when it never did."""
    directory = bundle.find(place, process.id)
    if directory is None:
        return None
    times = []
    for stream in process.meta.streams:
        try:
            found = bundle.segments(directory, stream)
            written = [segment for segment in found if segment.size]
            times += [os.stat(written[-1].path).st_mtime] if written else []
        except FileNotFoundError:  # moved or dropped while we looked
            continue
    return max(times, default=None)


def _wait_state(pid: int) -> str | None:
    """What the main thread is doing: its state, and what it waits for where the kernel tells."""
    state = next((line[6:].strip() for line in _read(f"/proc/{pid}/status").splitlines() if line[:6] == "State:"), "")
    waits_for = _read(f"/proc/{pid}/wchan").strip()
    told = [state] if waits_for in ("", "0") else [state, f"in {waits_for}"]
    return " ".join(filter(None, told)) or None


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4096)
    except OSError:
        return ""
