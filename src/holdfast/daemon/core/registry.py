"""Every process the daemon knows, in memory. Questions are answered from here, so no caller waits for a disk."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

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
        self._watchers: dict[ProcessId, set[asyncio.Event]] = {}
        self._listeners: list[Callable[[HeldProcess], None]] = []
        #: What this daemon saw: commands that were let go, and ends by their reason.
        self.starts = 0
        self.ends: Counter[str] = Counter()

    @property
    def all(self) -> Mapping[ProcessId, HeldProcess]:
        """Also those that are being started and may come to nothing."""
        return self._processes

    @property
    def living(self) -> Mapping[ProcessId, HeldProcess]:
        """Those that run or are being started."""
        return self._living

    def running(self) -> list[HeldProcess]:
        return [process for process in self._living.values() if process.is_running]

    def shown(self) -> list[HeldProcess]:
        """Those that a caller may hear of."""
        return [process for process in self._processes.values() if not isinstance(process.state, Requested)]

    def get(self, process_id: ProcessId) -> HeldProcess | None:
        return self._processes.get(process_id)

    def owner(self, process_id: ProcessId) -> str | None:
        """The session that owns it; None for one that is unknown."""
        process = self._processes.get(process_id)
        return process.meta.session if process is not None else None

    def identify(self, text: str) -> HeldProcess:
        """The process meant by an id, the start of one, or a name. Raises NotFound, Ambiguous or BadValue."""
        exact = self._processes.get(ProcessId(text))
        if exact is not None and not isinstance(exact.state, Requested):
            return exact
        return identify(text, {process.id: process for process in self.shown()})

    def alike(self, meta: Meta) -> list[HeldProcess]:
        """Other living processes with the same session, command and directory, oldest first."""
        return [self._living[other] for other in self._alike.get(duplicate_key(meta), ()) if other != meta.id]

    def check_name(self, meta: Meta) -> None:
        """Raises NotNow when another living process has the name."""
        if meta.name is None:
            return
        for other in self.living.values():
            if other.meta.name == meta.name and other.id != meta.id:
                if other.meta.session != meta.session:  # other sessions must not learn whose it is
                    raise NotNow(f"the name {meta.name} is taken", next="choose another name")
                raise NotNow(f"{other.id} runs under the name {meta.name}", next=f"holdfast inspect {meta.name}")

    def put(self, process: HeldProcess) -> None:
        """This is how it stands now; whoever watches it is woken."""
        process_id = process.id
        before = self._processes.get(process_id)
        if before is not None and before.meta.session != process.meta.session:
            self._end_life(process_id)  # it is like others now
        self._processes[process_id] = process
        self._count(before, process)
        if process.has_ended:
            self._end_life(process_id)
        else:
            if process_id not in self._living:
                self._alike.setdefault(duplicate_key(process.meta), {})[process_id] = None
            self._living[process_id] = process
        self._wake(process_id)
        for listener in self._listeners:
            listener(process)

    def listen(self, listener: Callable[[HeldProcess], None]) -> None:
        """Have it called with every process that is put from now on. It must not wait, nor put anything itself."""
        self._listeners.append(listener)

    def _count(self, before: HeldProcess | None, now: HeldProcess) -> None:
        if before is not None and before.state is not now.state and not before.has_ended:
            self.starts += isinstance(before.state, Requested)
            if now.has_ended:
                self.ends[reason(now.state) or "unknown"] += 1

    def drop(self, process_id: ProcessId) -> None:
        self._processes.pop(process_id, None)
        self._end_life(process_id)
        self._wake(process_id)

    def _end_life(self, process_id: ProcessId) -> None:
        process = self._living.pop(process_id, None)
        if process is not None:
            key = duplicate_key(process.meta)
            self._alike[key].pop(process_id, None)
            if not self._alike[key]:
                del self._alike[key]

    def _wake(self, process_id: ProcessId) -> None:
        for woken in self._watchers.get(process_id, ()):
            woken.set()

    @contextmanager
    def watching(self, ids: Collection[ProcessId]) -> Iterator[asyncio.Event]:
        """An event that is set at every change of one of them."""
        changed = asyncio.Event()
        for process_id in ids:
            self._watchers.setdefault(process_id, set()).add(changed)
        try:
            yield changed
        finally:
            self._unwatch(ids, changed)

    async def wait_ended(self, process_id: ProcessId) -> HeldProcess | None:
        """The process once it has ended; None when it is forgotten meanwhile."""
        with self.watching([process_id]) as changed:
            while (process := self._processes.get(process_id)) is not None and not process.has_ended:
                await changed.wait()
                changed.clear()
            return process

    async def wait_run_over(self, process_id: ProcessId, run: int) -> HeldProcess | None:
        """The process once this run of it is over, as it stands then; None when it is forgotten meanwhile."""
        with self.watching([process_id]) as changed:
            while (process := self._processes.get(process_id)) is not None and process.run <= run:
                if process.has_ended or process.is_waiting:
                    break
                await changed.wait()
                changed.clear()
            return process

    def _unwatch(self, ids: Iterable[ProcessId], changed: asyncio.Event) -> None:
        for process_id in ids:
            watchers = self._watchers.get(process_id)
            if watchers is not None:
                watchers.discard(changed)
                if not watchers:
                    del self._watchers[process_id]
