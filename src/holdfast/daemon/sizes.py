"""How much output processes have, and which of their leftovers live, measured on the spot.

Measured in a thread and only for so long: on a disk that hangs, the last known figures are told.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from holdfast.model.ids import ProcessId
from holdfast.model.process import Leftover, Process, StreamExtent
from holdfast_keeper import bundle

_BUDGET = 0.25


class Measures(NamedTuple):
    streams: dict[str, StreamExtent]
    leftover_pids: list[int]


class _Seen(NamedTuple):
    """What a directory held when it had this time of change: until it changes, only the newest file grows."""

    changed: int
    first: int
    newest: int


class Sizes:
    def __init__(self, place: str) -> None:
        self._place = place
        self._pool = ThreadPoolExecutor(1, "sizes")
        self._seen: dict[tuple[ProcessId, str], _Seen] = {}
        self._turn = asyncio.Lock()
        self._under_way: asyncio.Future[dict[ProcessId, Measures]] | None = None

    async def measure(self, processes: list[Process]) -> dict[ProcessId, Measures]:
        """The figures of these processes; those that are missing could not be had in time."""
        if not processes:
            return {}
        try:
            async with asyncio.timeout(_BUDGET), self._turn:
                return await self._in_thread(processes)
        except TimeoutError:
            return {}

    async def _in_thread(self, processes: list[Process]) -> dict[ProcessId, Measures]:
        """One at a time: behind one that hangs, and that nobody waits for any more, no others pile up."""
        if self._under_way is not None:
            await asyncio.wait({self._under_way})
        self._under_way = asyncio.get_running_loop().run_in_executor(self._pool, self._measure_all, processes)
        await asyncio.wait({self._under_way})
        return self._under_way.result()

    def forget(self, process_id: ProcessId) -> None:
        for stream in bundle.FIFO:
            self._seen.pop((process_id, stream), None)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _measure_all(self, processes: list[Process]) -> dict[ProcessId, Measures]:
        return {process.id: self._measure(process) for process in processes}

    def _measure(self, process: Process) -> Measures:
        streams = dict(process.streams)
        for stream in process.meta.streams:
            extent = self._extent(process.id, stream)
            if extent is not None:
                closed = stream in streams and streams[stream].closed
                streams[stream] = StreamExtent(*extent, closed)
        return Measures(streams, living(process.leftovers))

    def _extent(self, process_id: ProcessId, stream: str) -> tuple[int, int] | None:
        for room in (bundle.LIVE, bundle.DONE):
            directory = f"{self._place}/{room}/{process_id}"
            try:
                seen = self._look(process_id, directory, stream)
                size = os.stat(bundle.segment_path(directory, stream, seen.newest)).st_size if seen.newest >= 0 else 0
            except FileNotFoundError:  # not there, moved, or dropped while we looked
                continue
            return seen.first, max(0, seen.newest) + size
        return None

    def _look(self, process_id: ProcessId, directory: str, stream: str) -> _Seen:
        changed = os.stat(directory).st_mtime_ns
        seen = self._seen.get((process_id, stream))
        if seen is None or seen.changed != changed:
            found = bundle.segments(directory, stream)
            seen = _Seen(changed, found[0].start, found[-1].start) if found else _Seen(changed, 0, -1)
            self._seen[process_id, stream] = seen
        return seen


def living(leftovers: tuple[Leftover, ...]) -> list[int]:
    """Those that are still the same process and not dead."""
    return [leftover.pid for leftover in leftovers if _is_alive(leftover)]


def _is_alive(leftover: Leftover) -> bool:
    try:
        with open(f"/proc/{leftover.pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return fields[0] not in (b"Z", b"X", b"x") and int(fields[19]) == leftover.start
