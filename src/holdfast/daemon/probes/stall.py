"""One run of one process, watched for stalls for as long as it lives."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from typing import Any

from holdfast.daemon.keeper_link import Refused
from holdfast.daemon.probes.marks import is_same_run, settle
from holdfast.daemon.probes.publish import publish
from holdfast.daemon.room import Room
from holdfast.errors import Unreachable
from holdfast.machine.cpu import cpu_seconds
from holdfast.model import stalls
from holdfast.model.process import Process
from holdfast.model.stalls import ActivitySample, Stall, StallWatch
from holdfast_keeper import bundle
from holdfast_keeper.bundle import Segment

_ATTEMPTS = 10


async def watch_stalls(room: Room, process: Process) -> None:
    """Returns when the run is over."""
    limit = process.meta.stall or 0.0
    mark = stalls.mark_of(process)
    watch = stalls.resumed(mark, limit, time.monotonic()) if mark is not None else None
    sampler = _Sampler(room, process)
    while (now := room.registry.get(process.id)) is not None and is_same_run(now, process):
        sample = await sampler.sample()
        if sample is not None:
            watch = StallWatch.begin(sample) if watch is None else stalls.observe(watch, sample)
            await _judge(room, now, watch, limit)
        await asyncio.sleep(stalls.pause(limit))


async def _judge(room: Room, process: Process, watch: StallWatch, limit: float) -> None:
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


async def _describe(room: Room, process: Process, watch: StallWatch) -> Stall:
    return Stall(
        run=process.started_at or 0.0,
        since=time.time() - (time.monotonic() - watch.active.at),
        output_bytes=watch.last.output_bytes,
        cpu_seconds=watch.last.cpu_seconds,
        last_output_at=await room.read(_last_output_at, room.paths.place, process),
        wait=await asyncio.to_thread(_wait_state, process.pid or 0),
    )


class _Sampler:
    """How much one run wrote and worked up to now."""

    def __init__(self, room: Room, process: Process) -> None:
        self._room = room
        self._process = process
        self._born: dict[str, Any] | None = None

    async def sample(self) -> ActivitySample | None:
        """None when it cannot be had."""
        try:
            group, pids = await self._tree()
        except (Refused, Unreachable):
            return None
        return await self._room.read(self._measure, group, pids)

    async def _tree(self) -> tuple[str | None, list[int]]:
        """Its cgroup, which stays the same, or its members, which do not."""
        keeper, process_id = self._room.keeper, self._process.id
        if self._born is None:
            self._born = (await keeper.request("report", id=process_id))["born"]
        group: str | None = self._born["group"]
        return group, [] if group is not None else (await keeper.request("tree", id=process_id))["pids"]

    def _measure(self, group: str | None, pids: list[int]) -> ActivitySample:
        newest = newest_segments(self._room.paths.place, self._process)
        written = sum(segment.start + segment.size for segment in newest)
        return ActivitySample(time.monotonic(), written, cpu_seconds(pids, group))


def newest_segments(place: str, process: Process) -> list[Segment]:
    """The newest piece of each log that has any."""
    for _ in range(_ATTEMPTS):
        directory = bundle.find(place, process.id)
        if directory is None:
            break
        try:
            found = [bundle.segments(directory, stream) for stream in process.meta.streams]
        except FileNotFoundError:  # moved or dropped while we looked
            continue
        return [segments[-1] for segments in found if segments]
    return []


def _last_output_at(place: str, process: Process) -> float | None:
    """When its log last grew; None when it never did."""
    written = [segment for segment in newest_segments(place, process) if segment.start + segment.size]
    try:
        return max((os.stat(segment.path).st_mtime for segment in written), default=None)
    except FileNotFoundError:  # as above: it has just been written to
        return time.time()


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
