"""The part of a place that lies in files: the bundles of its processes, read where the keeper or a mirror keeps them.

What is not a coroutine here blocks on the disk and is meant for a thread, as `read` offers one.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from holdfast.logs.reader import Log
from holdfast.model.process import HeldProcess, Leftover, ProcessId, StreamExtent
from holdfast.records import Struct
from holdfast_keeper import bundle
from holdfast_keeper.bundle import Segment

T = TypeVar("T")

_READERS = 4
_SIZES_BUDGET = 0.25
_ATTEMPTS = 10
#: More than the longest command with its environment.
_LARGEST_SPEC = 64 << 20


class Measures(Struct, frozen=True):
    streams: dict[str, StreamExtent]
    leftover_pids: list[int]


class _Listing(Struct, frozen=True):
    """The segments of a stream when the directory had this time of change: until it changes, only the newest grows."""

    changed: int
    first: int
    newest: int


class Bundles(ABC):
    """The bundles below `directory`."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        #: Apart from the threads of everything else that may have to wait.
        self.readers = ThreadPoolExecutor(_READERS, "logs")
        self._sizer = ThreadPoolExecutor(1, "sizes")
        self._listings: dict[tuple[ProcessId, str], _Listing] = {}
        self._sizing_turn = asyncio.Lock()
        self._sizing: asyncio.Future[dict[ProcessId, Measures]] | None = None

    async def read(self, work: Callable[..., T], *arguments: object) -> T:
        """Run something that reads log files in a thread. When it returns or raises, the thread has finished."""
        job = asyncio.get_running_loop().run_in_executor(self.readers, work, *arguments)
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError:
            await asyncio.wait({job})
            raise

    def log(self, process_id: ProcessId, stream: str) -> Log:
        """A reader of the log of one stream. A process without a bundle has an empty log."""
        return Log(self.directory, process_id, stream)

    def spec(self, process_id: str) -> dict[str, Any]:
        """What the keeper was asked to start: argv, cwd, env, umask, meta. Raises OSError or ValueError."""
        directory = bundle.open_directory(self.directory, process_id)
        if directory is None:
            raise FileNotFoundError(process_id)
        try:
            return _spec(f"/proc/self/fd/{directory}")
        finally:
            os.close(directory)

    def specs(self) -> Iterator[dict[str, Any]]:
        """Those of all processes, ended ones first. One that cannot be read is left out."""
        for state in (bundle.DONE, bundle.LIVE):
            for name in sorted(self._names(state)):
                try:
                    yield self.spec(name)
                except (OSError, ValueError):
                    continue

    def ended(self) -> list[str]:
        """The names of the bundles that nothing writes to any more."""
        return self._names(bundle.DONE)

    def output_bytes(self, process: HeldProcess) -> int:
        """How much it has written, over all streams."""
        return sum(segment.start + segment.size for segment in self._newest(process))

    def last_output_at(self, process: HeldProcess) -> float | None:
        """When its log last grew; None when it never did."""
        written = [segment for segment in self._newest(process) if segment.start + segment.size]
        try:
            return max((os.stat(segment.path).st_mtime for segment in written), default=None)
        except FileNotFoundError:  # the segment was dropped: newer output has replaced it
            return time.time()

    async def sizes(self, processes: list[HeldProcess]) -> dict[ProcessId, Measures]:
        """How much output these processes have, and which leftovers live. On a disk that hangs, some are missing."""
        if not processes:
            return {}
        try:
            async with asyncio.timeout(_SIZES_BUDGET), self._sizing_turn:
                # One at a time: no others queue up behind one that hangs and that nothing waits for any more.
                if self._sizing is not None:
                    await asyncio.wait({self._sizing})
                loop = asyncio.get_running_loop()
                self._sizing = loop.run_in_executor(self._sizer, self._measure_all, processes)
                await asyncio.wait({self._sizing})
                return self._sizing.result()
        except TimeoutError:
            return {}

    @abstractmethod
    def living(self, leftovers: tuple[Leftover, ...]) -> list[int]:
        """The pids of those that are alive and still the same process."""

    def names(self) -> list[str]:
        """The names of all bundles."""
        return [*self._names(bundle.LIVE), *self._names(bundle.DONE)]

    def recorded(self, process_id: ProcessId) -> dict[str, Any] | None:
        """The report of a process as its bundle has it; None for one that was never started, or has no bundle."""
        directory = bundle.find(self.directory, process_id)
        try:
            report = bundle.finished_report(process_id, directory) if directory is not None else None
        except OSError:
            return None
        if (
            report is not None
            and directory is not None
            and not directory.startswith(f"{self.directory}/{bundle.DONE}/")
        ):
            for stream in report["streams"].values():
                stream["closed"] = False
        return report

    def recorded_end(self, process_id: ProcessId) -> dict[str, Any] | None:
        """The report of a process whose end is in its bundle; None where it is not. For places without a keeper."""
        directory = bundle.find(self.directory, process_id)
        try:
            report = bundle.finished_report(process_id, directory) if directory is not None else None
        except OSError:
            return None
        return report if report is not None and report["exit"] is not None else None

    def remove_bundle(self, process_id: ProcessId) -> None:
        """For places without a keeper."""
        directory = bundle.find(self.directory, process_id)
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)

    def forget(self, process_id: ProcessId) -> None:
        """Its bundle is removed."""
        for stream in bundle.FIFO:
            self._listings.pop((process_id, stream), None)

    def close(self) -> None:
        for pool in (self.readers, self._sizer):
            pool.shutdown(wait=False, cancel_futures=True)

    def _names(self, state: str) -> list[str]:
        try:
            return os.listdir(f"{self.directory}/{state}")
        except FileNotFoundError:
            return []

    def _newest(self, process: HeldProcess) -> list[Segment]:
        """The newest segment of each log that has any."""
        for _ in range(_ATTEMPTS):
            directory = bundle.find(self.directory, process.id)
            if directory is None:
                break
            try:
                found = [bundle.segments(directory, stream) for stream in process.meta.streams]
            except FileNotFoundError:  # moved or dropped meanwhile
                continue
            return [segments[-1] for segments in found if segments]
        return []

    def _measure_all(self, processes: list[HeldProcess]) -> dict[ProcessId, Measures]:
        return {process.id: self._measure(process) for process in processes}

    def _measure(self, process: HeldProcess) -> Measures:
        return Measures(self.extents(process), self.living(process.leftovers))

    def extents(self, process: HeldProcess) -> dict[str, StreamExtent]:
        """Of its logs, as they are on disk; those that are known, where there is no bundle."""
        streams = dict(process.streams)
        for stream in process.meta.streams:
            extent = self._extent(process.id, stream)
            if extent is not None:
                closed = stream in streams and streams[stream].closed
                streams[stream] = StreamExtent(*extent, closed)
        return streams

    def _extent(self, process_id: ProcessId, stream: str) -> tuple[int, int] | None:
        for state in (bundle.LIVE, bundle.DONE):
            directory = f"{self.directory}/{state}/{process_id}"
            try:
                seen = self._list(process_id, directory, stream)
                size = os.stat(bundle.segment_path(directory, stream, seen.newest)).st_size if seen.newest >= 0 else 0
            except FileNotFoundError:  # not there, moved, or dropped meanwhile
                continue
            return seen.first, max(0, seen.newest) + size
        return None

    def _list(self, process_id: ProcessId, directory: str, stream: str) -> _Listing:
        changed = os.stat(directory).st_mtime_ns
        seen = self._listings.get((process_id, stream))
        if seen is None or seen.changed != changed:
            found = bundle.segments(directory, stream)
            seen = _Listing(changed, found[0].start, found[-1].start) if found else _Listing(changed, 0, -1)
            self._listings[process_id, stream] = seen
        return seen


def _spec(directory: str) -> dict[str, Any]:
    with open(bundle.open_file(f"{directory}/{bundle.SPEC}"), "rb") as file:
        data = file.read(_LARGEST_SPEC + 1)
    if len(data) > _LARGEST_SPEC:
        raise ValueError("the spec is too large")
    spec = json.loads(data)
    if not isinstance(spec, dict):
        raise ValueError("the spec is not an object")
    return spec
