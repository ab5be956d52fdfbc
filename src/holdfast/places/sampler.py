"""What processes use, measured in a thread: often while clients ask for it, seldom otherwise.

A process that used no processor time since the last reading cannot have changed its memory or its ports, so an idle
one costs one small file a round; and when the place as a whole was idle, none is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from holdfast.machine import cgroups, proc
from holdfast.machine.listeners import listening
from holdfast.model.probes.usage import Track
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.records import Struct

T = TypeVar("T")

#: Between two rounds while clients ask, and for how long one request counts.
FAST, LOOK_LASTS = 2.0, 10.0
#: Between two rounds while none asks.
SLOW = 60.0
_BUDGET = 1.0
#: Between two readings that give the present rate.
_RATE_TIME = 0.25
#: Reading the table of all connections takes milliseconds; sooner where a client asked.
_PORTS_PAUSE, _PORTS_ASKED_PAUSE = 4.0, 0.5


class Target(Struct, frozen=True):
    """A running process, as the thread needs it."""

    id: ProcessId
    pid: int
    group: str | None
    memory_group: str | None


class UsageSampler:
    """`running` gives the processes to measure, `place_group` the cgroup that all of them are in."""

    def __init__(self, running: Callable[[], Iterable[HeldProcess]], place_group: Callable[[], str | None]) -> None:
        self._running = running
        self._place_group = place_group
        self._pool = ThreadPoolExecutor(1, "sampler")
        #: What was last measured of each process that was measured. One that has ended may be removed.
        self.tracks: dict[ProcessId, Track] = {}
        self._looked_at = -LOOK_LASTS
        self._looked = asyncio.Event()
        self._gauges = cgroups.CpuGauges()
        self._place_cpu: float | None = None
        self._ports_due: dict[ProcessId, list[int]] = {}
        self._ports_at = -_PORTS_PAUSE
        self._under_way: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Keep measuring, for ever."""
        while True:
            self._looked.clear()
            is_looking = time.monotonic() - self._looked_at < LOOK_LASTS
            if is_looking:
                await asyncio.sleep(FAST)
                await self._round(is_looking=True)
                continue
            if self._gauges.are_open:  # files are kept open only while clients ask
                await self._in_thread(self._gauges.keep, ())
            if await self._is_looked_at_within(SLOW):
                continue  # that request has measured
            await self._round(is_looking=False)

    async def fresh(self, processes: Collection[HeldProcess], max_age: float = 1.0) -> None:
        """Measure those whose figures are older than that, within the budget. For a while, all are measured often."""
        now = self._looked_at = time.monotonic()
        self._looked.set()
        stale = [process for process in processes if process.is_active and not self._is_fresh(process.id, now, max_age)]
        if stale:
            await self._within_budget(_targets(stale), _PORTS_ASKED_PAUSE)

    async def rate(self, processes: Collection[HeldProcess]) -> None:
        """As fresh, and also measure what share of a processor they use at present."""
        now = time.monotonic()
        is_old = not all(self._is_rated(process, now) for process in processes)
        await self.fresh(processes, max_age=FAST)
        if is_old:
            await asyncio.sleep(_RATE_TIME)
            await self.fresh(processes, max_age=0.0)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _is_fresh(self, process_id: ProcessId, now: float, max_age: float) -> bool:
        track = self.tracks.get(process_id)
        return track is not None and track.is_fresh(now, max_age)

    def _is_rated(self, process: HeldProcess, now: float) -> bool:
        track = self.tracks.get(process.id)
        return track is not None and track.cpu_percent is not None and track.is_fresh(now, 2 * FAST)

    async def _is_looked_at_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._looked.wait()
        return self._looked.is_set()

    async def _within_budget(self, targets: list[Target], ports_pause: float) -> None:
        """Callers do not wait for a machine that hangs; the thread goes on, and nothing queues up behind it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_BUDGET):
                while self._under_way is not None and not self._under_way.done():
                    await asyncio.wait({self._under_way})
                work = [(target, self.tracks.setdefault(target.id, Track())) for target in targets]
                job = self._under_way = self._begin(work, ports_pause)
                await asyncio.wait({job})
                job.result()

    def _begin(self, work: list[tuple[Target, Track]], ports_pause: float) -> asyncio.Future[None]:
        """Measure these, and their ports unless those were read less than `ports_pause` ago."""
        return self._in_thread(self._measure, work, ports_pause)

    async def keep_only(self, processes: Collection[HeldProcess]) -> None:
        """Forget what was measured of all others."""
        for gone in self.tracks.keys() - {process.id for process in processes}:
            del self.tracks[gone]
        await self._in_thread(self._gauges.keep, [process.group for process in processes])

    async def _round(self, is_looking: bool) -> None:
        targets = _targets(self._running())
        living = {target.id for target in targets}
        for gone in self.tracks.keys() - living:
            del self.tracks[gone]
        if is_looking or await self._place_did_something():
            await self._measure_all(targets)
            await self._in_thread(self._gauges.keep, [target.group for target in targets])

    async def _measure_all(self, targets: list[Target]) -> None:
        now = time.monotonic()
        stale = [target for target in targets if not self._is_fresh(target.id, now, FAST / 2)]
        await self._within_budget(stale, _PORTS_PAUSE)
        for target in targets:
            if (track := self.tracks.get(target.id)) is not None:
                track.remember(now)

    async def _place_did_something(self) -> bool:
        """Whether any process may have used anything since the last slow round."""
        group = self._place_group()
        if group is None:
            return True
        before = self._place_cpu
        self._place_cpu = await self._in_thread(self._gauges.cpu_seconds, group)
        return self._place_cpu is None or self._place_cpu != before

    def _in_thread(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)

    # In the thread.

    def _measure(self, work: list[tuple[Target, Track]], ports_pause: float) -> None:
        members = _members_without_group(target for target, _ in work)
        for target, track in work:
            pids = members.get(target.pid, [])
            used = proc.cpu_seconds(pids) if target.group is None else self._gauges.cpu_seconds(target.group)
            did_something = track.take_cpu(used, time.monotonic())
            if did_something or target.group is None:  # without a group, small amounts do not show
                pids = cgroups.pids_in(target.group) if target.group is not None else pids
                self._take_memory(track, target, pids)
                self._ports_due[target.id] = pids
        if time.monotonic() - self._ports_at >= ports_pause:
            self._take_ports()

    def _take_memory(self, track: Track, target: Target, pids: list[int]) -> None:
        memory = cgroups.memory_of(target.memory_group) if target.memory_group is not None else proc.memory_of(pids)
        if memory is not None:
            track.take_memory(memory.now, memory.peak)

    def _take_ports(self) -> None:
        """Of all that were active since the last time together: the table of connections is read only once."""
        if not self._ports_due:
            return
        due, self._ports_due = self._ports_due, {}
        self._ports_at = time.monotonic()
        owners = {pid: process_id for process_id, pids in due.items() for pid in pids}
        found: dict[ProcessId, list[int]] = {process_id: [] for process_id in due}
        for port, pid in listening(list(owners)).items():
            found[owners[pid]].append(port)
        for process_id, ports in found.items():
            if (track := self.tracks.get(process_id)) is not None:
                track.ports = sorted(ports)


def _targets(running: Iterable[HeldProcess]) -> list[Target]:
    return [
        Target(process.id, process.pid, process.group, process.memory_group)
        for process in running
        if process.pid is not None
    ]


def _members_without_group(targets: Iterable[Target]) -> dict[int, list[int]]:
    leaders = [target.pid for target in targets if target.group is None]
    return proc.trees(leaders) if leaders else {}
