"""Every process that the daemon knows, in memory: no caller that only reads waits for a disk."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager

from holdfast.daemon.core.tasks import ChangeSignals
from holdfast.errors import NotNow
from holdfast.model.ids import ProcessId
from holdfast.model.lifecycle import Requested, reason
from holdfast.model.process import HeldProcess, Meta
from holdfast.model.process_rules import duplicate_key, identify


class Registry:
    def __init__(self) -> None:
        self._processes: dict[ProcessId, HeldProcess] = {}
        self._living: dict[ProcessId, HeldProcess] = {}
        self._alike: dict[tuple[object, ...], dict[ProcessId, None]] = {}
        self._changes: ChangeSignals[ProcessId] = ChangeSignals()
        #: Each with the options of a start that it is for; none for all processes.
        self._listeners: list[tuple[Callable[[HeldProcess], None], tuple[str, ...]]] = []
        self._interests: dict[ProcessId, list[Callable[[HeldProcess], None]]] = {}
        #: Counted since this daemon started: starts, and ends by reason.
        self.starts = 0
        self.ends: Counter[str] = Counter()

    @property
    def all(self) -> Mapping[ProcessId, HeldProcess]:
        """Also those that are being started."""
        return self._processes

    @property
    def living(self) -> Mapping[ProcessId, HeldProcess]:
        """Those that run or are being started."""
        return self._living

    def running(self) -> list[HeldProcess]:
        return [process for process in self._living.values() if process.is_running]

    def living_of(self, session: str | None, task: str | None = None, every: bool = False) -> list[HeldProcess]:
        """Living processes of this session or of this task; or every one."""
        return [
            process
            for process in self._living.values()
            if every or process.meta.session == session or (task is not None and process.meta.task == task)
        ]

    def shown(self) -> list[HeldProcess]:
        """Those that a caller may see: not those that are being started."""
        return [process for process in self._processes.values() if not isinstance(process.state, Requested)]

    def get(self, process_id: ProcessId) -> HeldProcess | None:
        return self._processes.get(process_id)

    def owner(self, process_id: ProcessId) -> str | None:
        """The session that owns it; None for one that is unknown."""
        process = self._processes.get(process_id)
        return process.meta.session if process is not None else None

    def identify(self, text: str) -> HeldProcess:
        """The process with this id or name, or a unique prefix of one. Raises NotFound, Ambiguous or BadValue."""
        exact = self._processes.get(ProcessId(text))
        if exact is not None and not isinstance(exact.state, Requested):
            return exact
        return identify(text, {process.id: process for process in self.shown()})

    def alike(self, meta: Meta) -> list[HeldProcess]:
        """Other living processes with the same session, command and directory, oldest first."""
        return [self._living[other] for other in self._alike.get(duplicate_key(meta), ()) if other != meta.id]

    def check_name(self, meta: Meta, everywhere: bool) -> None:
        """Raises NotNow when another living process of the session, or of any, has the name."""
        if meta.name is None:
            return
        for other in self.living.values():
            if other.meta.name == meta.name and other.id != meta.id:
                if other.meta.session != meta.session:
                    if not everywhere:
                        continue
                    raise NotNow(f"the name {meta.name} is taken", next="choose another name")
                raise NotNow(f"{other.id} runs under the name {meta.name}", next=f"holdfast inspect {meta.name}")

    def put(self, process: HeldProcess) -> None:
        """Replace the process. Tasks that watch it are woken."""
        process_id = process.id
        before = self._processes.get(process_id)
        if before is not None and before.meta.session != process.meta.session:
            self._end_life(process_id)  # the session is part of its key
        self._processes[process_id] = process
        self._count(before, process)
        if process.has_ended:
            self._end_life(process_id)
        else:
            if process_id not in self._living:
                self._alike.setdefault(duplicate_key(process.meta), {})[process_id] = None
            self._living[process_id] = process
        self._changes.send(process_id)
        for listener in self._interested(process):
            listener(process)
        if process.has_ended:
            self._interests.pop(process_id, None)

    def listen(self, listener: Callable[[HeldProcess], None], *options: str) -> None:
        """Have it called with every process that is put from now on. It must not wait, nor put anything itself.

        With `options` only with processes that were started with one of them: others cost nothing.
        """
        self._listeners.append((listener, options))
        self._interests.clear()

    def _interested(self, process: HeldProcess) -> list[Callable[[HeldProcess], None]]:
        """The listeners for a process. Its options stay the same, so they are looked up once."""
        found = self._interests.get(process.id)
        if found is None:
            found = [
                listener
                for listener, options in self._listeners
                if not options or any(_is_given(getattr(process.meta, option)) for option in options)
            ]
            self._interests[process.id] = found
        return found

    def _count(self, before: HeldProcess | None, now: HeldProcess) -> None:
        if before is not None and before.state is not now.state and not before.has_ended:
            self.starts += isinstance(before.state, Requested)
            if now.has_ended:
                self.ends[reason(now.state) or "unknown"] += 1

    def drop(self, process_id: ProcessId) -> None:
        self._processes.pop(process_id, None)
        self._interests.pop(process_id, None)
        self._end_life(process_id)
        self._changes.send(process_id)

    def _end_life(self, process_id: ProcessId) -> None:
        process = self._living.pop(process_id, None)
        if process is not None:
            key = duplicate_key(process.meta)
            self._alike[key].pop(process_id, None)
            if not self._alike[key]:
                del self._alike[key]

    def watching(self, ids: Collection[ProcessId]) -> AbstractContextManager[asyncio.Event]:
        """An event that is set at every change of one of them."""
        return self._changes.listening(*ids)

    async def until(self, ids: Collection[ProcessId], is_reached: Callable[[], bool]) -> None:
        """Returns when the condition holds. It is checked now and at every change of one of these processes."""
        with self.watching(ids) as changed:
            while not is_reached():
                await changed.wait()
                changed.clear()

    async def wait_ended(self, process_id: ProcessId) -> HeldProcess | None:
        """The process once it has ended; None when it is removed meanwhile."""
        await self.until([process_id], lambda: (now := self.get(process_id)) is None or now.has_ended)
        return self.get(process_id)

    async def wait_run_over(self, process_id: ProcessId, run: int) -> HeldProcess | None:
        """The process once this run of it is over; None when it is removed meanwhile."""

        def is_over() -> bool:
            now = self.get(process_id)
            return now is None or now.run > run or now.has_ended or now.is_waiting

        await self.until([process_id], is_over)
        return self.get(process_id)


def _is_given(value: object) -> bool:
    return value is not None and value is not False and value != ()
