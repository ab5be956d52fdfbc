"""After a start of the daemon or of the keeper: rows, reports and bundles are compared.

What lives is adopted, what ended meanwhile is recorded with its true exit code, and what is unknown to all is recorded
as lost. Nothing is run again.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

from holdfast.daemon.core.log import note
from holdfast.daemon.core.registry import Registry
from holdfast.daemon.core.supervisor import Report, Supervisor
from holdfast.daemon.core.tasks import BackgroundTasks
from holdfast.errors import Unreachable
from holdfast.model.events import recovered
from holdfast.model.process import HeldProcess, Meta, ProcessId, is_id
from holdfast.places.base import ExecutionPlace, Refused
from holdfast.records import replace
from holdfast_keeper.protocol import Message

_AT_ONCE = 64


class Recovery:
    def __init__(
        self, place: ExecutionPlace, registry: Registry, supervisor: Supervisor, background: BackgroundTasks
    ) -> None:
        self._place = place
        self._registry = registry
        self._supervisor = supervisor
        self._background = background
        self._compared = asyncio.Event()
        #: The part that was started anew: this daemon, until its first comparison is done; after that a keeper.
        self._new_part = "daemon"
        self._comparing = asyncio.Lock()

    def on_hello(self, hello: Message) -> None:
        """Compare the keeper's hello with the registry, as the registry is now."""
        ours = (process for process in self._registry.all.values() if process.meta.place == self._place.key)
        open_ = [process.id for process in ours if not process.output_closed]
        known = [process_id for process_id in open_ if not self._supervisor.turn(process_id).locked()]
        later = self._place.keeper.hold_facts()  # those of an earlier keeper are in this hello, too
        live = [report for report in hello["live"] if self._is_ours(report["id"])]
        finished = [ProcessId(name) for name in hello.get("finished", ()) if is_id(name) and self._is_ours(name)]
        self._background.start(self._compare(live, known, finished, later), "compare")

    def _is_ours(self, process_id: str) -> bool:
        return self._supervisor.is_of(process_id, self._place.key)

    async def complete(self, budget: float) -> None:
        """Returns when the registry agrees with the keeper and the bundles, or when the budget is spent."""
        try:
            async with asyncio.timeout(budget):
                await self._compared.wait()
                await self._adopt_finished()
        except TimeoutError:
            note("recovery-incomplete")

    async def _compare(
        self, live: list[Report], known: list[ProcessId], finished: list[ProcessId], later: list[Message]
    ) -> None:
        """Apply a hello, then the facts that came after it."""
        try:
            async with self._comparing:
                await self._apply_hello(live, known, finished)
        finally:
            self._place.keeper.release_facts(later)

    async def _apply_hello(self, live: list[Report], known: list[ProcessId], finished: list[ProcessId]) -> None:
        """Those of `known`, which were open when the hello came, have ended or are lost if it does not name them.

        Those of `finished` have ended in a place that could not be reached, and may have no row.
        """
        reported = {ProcessId(report["id"]) for report in live}
        unknown = [name for name in [*reported, *finished] if self._registry.get(name) is None]
        rebuilt = await asyncio.to_thread(self._rebuild_all, list(unknown))
        for process in rebuilt:
            self._supervisor.show(process)
        await asyncio.gather(*map(self._adopt, live))
        taken_over = reported & {*known, *(process.id for process in rebuilt)}
        await asyncio.gather(*(self._announce(process_id, self._new_part) for process_id in taken_over))
        self._new_part = "keeper"
        missing = {*known, *(process.id for process in rebuilt)} - reported
        await asyncio.gather(*map(self._request_report, missing))
        note("compared", live=len(live), missing=len(missing))
        self._compared.set()

    async def _adopt_finished(self) -> None:
        """Make rows for ended bundles that have none, as after the loss of the store."""
        names = await asyncio.to_thread(self._place.ended)
        without = [name for name in names if is_id(name) and self._registry.get(ProcessId(name)) is None]
        rebuilt = await asyncio.to_thread(self._rebuild_all, without)
        for process in rebuilt:
            self._supervisor.show(process)
        for at in range(0, len(rebuilt), _AT_ONCE):
            await asyncio.gather(*(self._request_report(process.id) for process in rebuilt[at : at + _AT_ONCE]))
        if without:
            note("rebuilt", processes=len(without))

    async def adopt_bundles(self) -> None:
        """Make rows for bundles that have none, by what they say: of processes that were started just before a crash.

        The keeper is not asked: it may be out of reach for long.
        """
        names = await asyncio.to_thread(self._place.names)
        without = [ProcessId(name) for name in names if is_id(name) and self._registry.get(ProcessId(name)) is None]
        found = {name: await asyncio.to_thread(self._place.recorded, name) for name in without}
        reports = [report for report in found.values() if report is not None]
        for process in await asyncio.to_thread(self._rebuild_all, [report["id"] for report in reports]):
            self._supervisor.show(process)
        for report in reports:
            await self._supervisor.take(report)

    async def _adopt(self, report: Report) -> None:
        await self._supervisor.take(report)
        if report["exit"] is None and self._place.is_of_earlier_boot(report):
            process = self._registry.get(ProcessId(report["id"]))
            if process is not None and not process.is_restarting:  # one that waits was found to be lost before
                await self._supervisor.lose(process.id)  # it ran before the machine was started again

    async def _announce(self, process_id: ProcessId, new_part: str) -> None:
        async with self._supervisor.turn(process_id):
            process = self._registry.get(process_id)
            if process is not None and process.is_up:
                self._supervisor.show(process, recovered(process, new_part, time.time()))

    async def _request_report(self, process_id: ProcessId) -> None:
        """One that the keeper does not hold: it has ended, with a record, or is lost.

        One that waits in a queue may have been started. If not, that says nothing about a start that follows.
        """
        if (process := self._registry.get(process_id)) is not None and process.is_queued:
            return await self._request_report_of_queued(process_id)
        try:
            report = await self._place.keeper.request("report", id=process_id)
        except Refused:
            await self._supervisor.lose(process_id)
        except Unreachable:
            return None  # the next hello brings it
        else:
            if report["id"] == process_id:
                await self._supervisor.take(report)

    async def _request_report_of_queued(self, process_id: ProcessId) -> None:
        async with self._supervisor.turn(process_id):
            process = self._registry.get(process_id)
            if process is None or not process.is_queued:
                return
            with contextlib.suppress(Refused, Unreachable):
                await self._supervisor.apply(process, await self._place.keeper.request("report", id=process_id))

    def _rebuild_all(self, ids: list[str]) -> list[HeldProcess]:
        return [process for process in map(self._rebuild, ids) if process is not None]

    def _rebuild(self, process_id: str) -> HeldProcess | None:
        """A process from the spec in its bundle; None when that cannot be read."""
        try:
            meta = replace(Meta.from_json(self._place.spec(process_id)["meta"]), place=self._place.key)
            if self._place.task and self._place.task not in (meta.task, meta.session):
                raise ValueError("it is of another task than its place")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as broken:
            note("bundle-unreadable", process=process_id, why=repr(broken))
            return None
        return HeldProcess(meta, cols=meta.cols, rows=meta.rows)
