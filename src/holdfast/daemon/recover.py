"""After a start of the daemon or of the keeper: rows, reports and bundles are laid side by side.

What lives is adopted, what ended meanwhile is told with its true code, and of what nobody knows any more it is said
that it is lost. Nothing is ever run again.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator

from holdfast.daemon.chores import Chores
from holdfast.daemon.keeper_link import KeeperLink, Refused
from holdfast.daemon.logbook import note
from holdfast.daemon.registry import Registry
from holdfast.daemon.reports import Report
from holdfast.daemon.supervise import Supervisor
from holdfast.errors import Unreachable
from holdfast.model.events import recovered
from holdfast.model.ids import ProcessId, is_id
from holdfast.model.process import Meta, Process
from holdfast_keeper import bundle
from holdfast_keeper.protocol import Message

_AT_ONCE = 64


class Recovery:
    def __init__(
        self, place: str, registry: Registry, keeper: KeeperLink, supervisor: Supervisor, chores: Chores
    ) -> None:
        self._place = place
        self._registry = registry
        self._keeper = keeper
        self._supervisor = supervisor
        self._chores = chores
        self._boot_id = boot_id()
        self._compared = asyncio.Event()
        #: The part that was started anew: this daemon, until its first comparison is done; after that a keeper.
        self._new_part = "daemon"
        self._one_by_one = asyncio.Lock()
        #: Facts that came after a hello that is still being compared; None when there is no such.
        self._held_back: list[Message] | None = None

    def on_hello(self, hello: Message) -> None:
        """Lay the keeper's hello beside the registry. What the registry knows is looked at now, before it changes."""
        open_ = [process.id for process in self._registry.all.values() if not process.output_closed]
        known = [process_id for process_id in open_ if not self._supervisor.turn(process_id).locked()]
        self._held_back = []  # what an earlier keeper told is in this hello, too
        self._chores.start(self._compare(hello["live"], known, self._held_back), "compare")

    def on_fact(self, fact: Message) -> None:
        """Let a fact count after the hello that came before it, which may take longer."""
        if self._held_back is not None:
            self._held_back.append(fact)
        else:
            self._supervisor.on_fact(fact)

    async def complete(self, budget: float) -> None:
        """When everything is as the keeper and the bundles say; after the budget, as far as is known."""
        try:
            async with asyncio.timeout(budget):
                await self._compared.wait()
                await self._adopt_finished()
        except TimeoutError:
            note("recovery-incomplete")

    async def _compare(self, live: list[Report], known: list[ProcessId], later: list[Message]) -> None:
        """Take a hello in, then the facts that came after it."""
        try:
            async with self._one_by_one:
                await self._take_hello(live, known)
        finally:
            if self._held_back is later:
                self._held_back = None
            for fact in later:
                self._supervisor.on_fact(fact)

    async def _take_hello(self, live: list[Report], known: list[ProcessId]) -> None:
        """`known` lived or were written to, and were not just being started, when the keeper said hello.

        If it does not tell of them, they are over or lost.
        """
        reported = {ProcessId(report["id"]) for report in live}
        unknown = [report for report in live if self._registry.get(report["id"]) is None]
        rebuilt = await asyncio.to_thread(self._rebuild_all, [report["id"] for report in unknown])
        for process in rebuilt:
            self._supervisor.show(process)
        await asyncio.gather(*map(self._adopt, live))
        taken_over = reported & {*known, *(process.id for process in rebuilt)}
        await asyncio.gather(*(self._announce(process_id, self._new_part) for process_id in taken_over))
        self._new_part = "keeper"
        await asyncio.gather(*(self._ask_for(process_id) for process_id in known if process_id not in reported))
        note("compared", live=len(live), missing=len(set(known) - reported))
        self._compared.set()

    async def _adopt_finished(self) -> None:
        """Make rows again for bundles in done/ that have none, as after the loss of the store."""
        names = await asyncio.to_thread(_names, f"{self._place}/{bundle.DONE}")
        without = [name for name in names if is_id(name) and self._registry.get(ProcessId(name)) is None]
        rebuilt = await asyncio.to_thread(self._rebuild_all, without)
        for process in rebuilt:
            self._supervisor.show(process)
        for some in _batched(rebuilt, _AT_ONCE):
            await asyncio.gather(*(self._ask_for(process.id) for process in some))
        if without:
            note("rebuilt", processes=len(without))

    async def _adopt(self, report: Report) -> None:
        await self._supervisor.take(report)
        if report["exit"] is None and report["born"]["boot"] != self._boot_id:
            await self._supervisor.lose(ProcessId(report["id"]))  # it ran before the machine was started again

    async def _announce(self, process_id: ProcessId, new_part: str) -> None:
        async with self._supervisor.turn(process_id):
            process = self._registry.get(process_id)
            if process is not None and process.is_up:
                self._supervisor.show(process, recovered(process, new_part, time.time()))

    async def _ask_for(self, process_id: ProcessId) -> None:
        """One that the keeper does not hold: ended, with its record in done/, or gone."""
        try:
            report = await self._keeper.request("report", id=process_id)
        except Refused:
            await self._supervisor.lose(process_id)
        except Unreachable:
            return  # the next hello will tell
        else:
            await self._supervisor.take(report)

    def _rebuild_all(self, ids: list[str]) -> list[Process]:
        return [process for process in map(self._rebuild, ids) if process is not None]

    def _rebuild(self, process_id: str) -> Process | None:
        """A process from what its bundle says was asked for; None when the bundle does not say it."""
        directory = bundle.find(self._place, process_id)
        try:
            with open(f"{directory}/{bundle.SPEC}", "rb") as file:
                meta = Meta.from_json(json.load(file)["meta"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as broken:
            note("bundle-unreadable", process=process_id, why=repr(broken))
            return None
        return Process(meta, cols=meta.cols, rows=meta.rows)


def _batched(processes: list[Process], size: int) -> Iterator[list[Process]]:
    return (processes[at : at + size] for at in range(0, len(processes), size))


def boot_id() -> str:
    """Which start of the machine this is: no process outlives it."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []
