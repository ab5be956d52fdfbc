"""Queues: starts that are recorded and wait, for their turn or for the end of other processes.

A start is on disk before the reply, and leaves the disk after its bundle is there. The keeper starts an id once, so a
command is started at most once, also if parts of holdfast are killed meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

from holdfast.daemon.core.log import note, note_soon
from holdfast.daemon.core.registry import Registry
from holdfast.daemon.core.tasks import pause
from holdfast.errors import DiskFull, HoldfastError, LimitReached, NotNow, from_keeper
from holdfast.model.lifecycle import Fact, LaunchFailed, PredecessorFailed, Queued, advance
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.model.queues import Obstacles, QueueSettings, is_awaited, next_starts
from holdfast.places.keeper_link import Refused
from holdfast.records import replace
from holdfast.store import queues as rows
from holdfast.store.queues import Launch, QueuedStart, StoredQueues
from holdfast.store.store import Store
from holdfast_keeper import failpoints

if TYPE_CHECKING:
    from holdfast.daemon.core.context import Call, DaemonContext, Message

_MOST_WAITING = 10_000
#: Seconds before a start is tried again that no fault of its own prevented.
_RETRY_PAUSE = 0.5


class ProcessQueues:
    """The queues of this instance, and the starts that wait in them."""

    def __init__(self, store: Store, registry: Registry, stored: StoredQueues) -> None:
        self._store = store
        self._registry = registry
        self._settings = stored.settings
        self._starts = {start.process: start for start in stored.starts}
        #: Set when a start may be due.
        self.changed = asyncio.Event()
        registry.listen(lambda _: self.changed.set(), "queue")

    async def settle(self, same_boot: bool) -> None:
        """After the processes are known: forget starts that were made, and pause queues after a boot. That is on disk
        before the boot is recorded, so a daemon that is killed meanwhile pauses them again.
        """
        for process_id in list(self._starts):
            process = self._registry.get(process_id)
            if process is None or not process.is_queued:
                self.forget(process_id)
        names = {process.meta.queue for process in self.waiting()} - {None}
        for name in names if not same_boot else ():
            assert name is not None
            self._settings[name] = replace(self.settings(name), paused=True)
            note("queue-paused", queue=name, why="the machine was started again")
            with contextlib.suppress(HoldfastError):  # on a full disk it is written later
                await self._store.change(partial(rows.put_settings, name=name, settings=self._settings[name]))

    def settings(self, name: str) -> QueueSettings:
        return self._settings.get(name, QueueSettings())

    def waiting(self) -> list[HeldProcess]:
        """In the order of their requests."""
        found = (self._registry.get(start.process) for start in sorted(self._starts.values()))
        return [process for process in found if process is not None and process.is_queued]

    def awaited(self) -> set[str]:
        """Ids of the processes that others wait for: these are not removed."""
        return {one for process in self.waiting() for one in (*process.meta.after, *process.meta.after_success)}

    def launch(self, process_id: ProcessId) -> Launch:
        return self._starts[process_id].launch

    def new(self, process_id: ProcessId, launch: Launch) -> QueuedStart:
        """A start behind all others. It counts when it was kept. Raises LimitReached."""
        if len(self._starts) >= _MOST_WAITING:
            raise LimitReached(f"{_MOST_WAITING} processes wait already")
        start = QueuedStart(max((one.seq for one in self._starts.values()), default=0) + 1, process_id, launch)
        self._starts[process_id] = start
        return start

    def forget(self, process_id: ProcessId) -> None:
        """The start was made, or will not be."""
        if self._starts.pop(process_id, None) is not None:
            self._store.change_soon(partial(rows.drop_start, process_id=process_id))

    async def change(self, name: str, limit: int | None, paused: bool | None) -> None:
        before = self.settings(name)
        after = QueueSettings(before.limit if limit is None else limit, before.paused if paused is None else paused)
        await self._store.change(partial(rows.put_settings, name=name, settings=after))
        self._settings[name] = after
        self.changed.set()

    async def remove(self, name: str) -> bool:
        """Forget its settings; False if it has none. Raises NotNow while it has processes."""
        if any(process.meta.queue == name for process in self._registry.living.values()):
            raise NotNow(f"the queue {name} has processes", next=f"holdfast queue {name}")
        settings = self._settings.pop(name, None)  # a process that is queued from now on is in a new queue
        if settings is None:
            return False
        try:
            await self._store.change(partial(rows.drop_settings, name=name))
        except HoldfastError:
            self._settings.setdefault(name, settings)
            raise
        return True

    def shown(self, call: Call) -> list[Message]:
        """Every queue that has processes or was changed, with the processes that the caller sees."""
        seen = [process for process in self._registry.living.values() if call.sees(process.meta.session)]
        used = {process.meta.queue for process in seen if process.meta.queue is not None}
        names = sorted(used if call.is_strict else used | self._settings.keys())
        return [self._queue_object(name, seen, call) for name in names]

    def shown_one(self, name: str, call: Call) -> Message:
        return self._queue_object(name, self._registry.living.values(), call)

    def _queue_object(self, name: str, living: Iterable[HeldProcess], call: Call) -> Message:
        settings = self.settings(name)
        return {
            "name": name,
            "limit": settings.limit,
            "paused": settings.paused,
            "running": [one.id for one in living if one.meta.queue == name and not one.is_queued],
            "waiting": [one.id for one in self.waiting() if one.meta.queue == name and call.sees(one.meta.session)],
        }

    def due(self) -> tuple[list[HeldProcess], list[tuple[HeldProcess, str]]]:
        get = lambda one: self._registry.get(ProcessId(one))  # noqa: E731
        return next_starts(self.waiting(), self._registry.living.values(), self._settings, get)

    def obstacles(self, process: HeldProcess, call: Call, most: int) -> Obstacles:
        """What a waiting process waits for, as far as the caller may know it. `most`: max_processes."""
        name, rule = process.meta.queue, self.settings(process.meta.queue or "")
        taken = [one for one in self._registry.living.values() if one.meta.queue == name and not one.is_queued]
        before = takewhile(lambda one: one.id != process.id, self.waiting())
        ahead = [one for one in before if one.meta.queue == name]
        start, skip = self.due()
        is_held = name is not None and process.id not in {one.id for one in (*start, *(one for one, _ in skip))}
        is_full = is_held and len(taken) >= rule.limit
        after = dict.fromkeys((*process.meta.after, *process.meta.after_success))
        known = [one for other in after if (one := self._registry.get(ProcessId(other))) is not None]
        return Obstacles(
            queue=name if is_held and (is_full or rule.paused or ahead) else None,
            is_paused=name is not None and rule.paused,
            limit=rule.limit if is_full else None,
            running=sum(call.sees(one.meta.session) for one in taken),
            ahead=sum(call.sees(one.meta.session) for one in ahead) if is_held else 0,
            awaited=[_awaited_text(one, call.sees(one.meta.session)) for one in known if is_awaited(one)],
            most=most if self._registry.count_started() >= most else None,
        )


def _awaited_text(process: HeldProcess, is_seen: bool) -> str:
    """`c (proc_…), which runs`."""
    if not is_seen:
        return process.id
    state = "waits to be started" if process.is_queued else "will be restarted" if process.is_restarting else "runs"
    return f"{f'{process.meta.name} ({process.id})' if process.meta.name else process.id}, which {state}"


async def enqueue(context: DaemonContext, process: HeldProcess, launch: Launch) -> HeldProcess:
    """Record a start. To be called in its turn. Raises DiskFull, and nothing is recorded then."""
    start = context.queues.new(process.id, launch)
    context.registry.put(process)
    queued = replace(process, state=Queued())
    try:
        happened = context.supervisor.happened(queued)
        await context.supervisor.commit(queued, happened, partial(rows.put_start, start=start), needs_disk=True)
    except BaseException:
        context.queues.forget(process.id)
        context.registry.drop(process.id)
        context.store.remove_soon([process.id])  # what could not be written is tried again otherwise
        raise
    failpoints.reach("start-recorded")
    _watch_awaited(context, queued)
    context.queues.changed.set()
    note_soon("queued", process=process.id, queue=process.meta.queue or "-", session=process.meta.session)
    return queued


async def withdraw(context: DaemonContext, process: HeldProcess, fact: Fact, trouble: str | None = None) -> None:
    """End a process that was not started. To be called in its turn. On disk before it is shown: raises DiskFull."""
    ended = replace(process, state=advance(process.state, fact), trouble=trouble)
    drop = partial(rows.drop_start, process_id=process.id)
    await context.supervisor.commit(ended, context.supervisor.happened(ended), drop, needs_disk=True)
    context.queues.forget(process.id)
    note("not-started", process=process.id, why=type(fact).__name__)


async def end_after_boot(context: DaemonContext) -> None:
    """End what waited for other processes without a queue when the machine went down: nothing starts unasked then."""
    for process in context.queues.waiting():
        if process.meta.queue is None:
            async with context.supervisor.turn(process.id):
                awaited = (*process.meta.after, *process.meta.after_success)
                await withdraw(context, process, PredecessorFailed(awaited[0], time.time()))


async def watch_queues(context: DaemonContext) -> None:
    """Start processes when their turn has come, until the daemon is to stop."""
    queues = context.queues
    under_way: set[ProcessId] = set()
    for process in queues.waiting():
        context.secrets.note(queues.launch(process.id)["env"], process.meta.session)
        _watch_awaited(context, process)
    while not context.stop_asked.is_set():
        queues.changed.clear()
        start, skip = queues.due()
        works = [(process.id, _start(context, process.id)) for process in start if process.id not in under_way]
        works += [(process.id, _skip(context, process.id, by)) for process, by in skip if process.id not in under_way]
        for process_id, work in works:
            under_way.add(process_id)
            task = context.background.start(work, "queue")
            task.add_done_callback(partial(_attempted, context, under_way, process_id))
        await queues.changed.wait()


def _attempted(context: DaemonContext, under_way: set[ProcessId], process_id: ProcessId, _: object) -> None:
    under_way.discard(process_id)
    context.queues.changed.set()


def _watch_awaited(context: DaemonContext, process: HeldProcess) -> None:
    """Look at the queues again when a process that it waits for ends."""

    async def until_ended(other: ProcessId) -> None:
        await context.registry.wait_ended(other)
        context.queues.changed.set()

    for other in {*process.meta.after, *process.meta.after_success}:
        if is_awaited(context.registry.get(ProcessId(other))):
            context.background.start(until_ended(ProcessId(other)), "awaited")


async def _start(context: DaemonContext, process_id: ProcessId) -> None:
    """One attempt. Where nothing is wrong with the command, the next one follows after a pause."""
    async with context.supervisor.turn(process_id):
        process = context.registry.get(process_id)
        if process is None or not process.is_queued:
            return
        try:
            await _launch(context, process)
            return
        except Refused as refused:
            error = from_keeper(refused.code, refused.message)
            if not isinstance(error, DiskFull):
                await withdraw(context, process, LaunchFailed(time.time()), error.message)
                return
        except HoldfastError as failed:
            error = failed
        note("start-put-off", process=process_id, why=error.message)
    await pause(_RETRY_PAUSE, unless=context.stop_asked)


async def _launch(context: DaemonContext, process: HeldProcess) -> None:
    context.registry.check_limit(context.settings.max_processes)
    meta, launch = process.meta, context.queues.launch(process.id)
    env = {**launch["env"], "HOLDFAST_SESSION": meta.session}  # it may have been renamed meanwhile
    if meta.pty:
        await context.screens.begin(process, False)
    failpoints.reach("queued-start")
    place = context.place_of(process)
    async with context.places.using(place):
        report = await place.keeper.start(process.id, {**launch, "env": env, "meta": meta.to_json()})
    failpoints.reach("queued-started")
    process = await context.supervisor.apply(process, report)
    context.queues.forget(process.id)
    if meta.pty:
        context.screens.watch(process)
    if meta.deadline is not None:
        context.deadlines_changed.set()
    note_soon("started", process=process.id, pid=process.pid, session=meta.session)


async def _skip(context: DaemonContext, process_id: ProcessId, by: str) -> None:
    async with context.supervisor.turn(process_id):
        process = context.registry.get(process_id)
        if process is not None and process.is_queued:
            try:
                await withdraw(context, process, PredecessorFailed(by, time.time()))
                return
            except HoldfastError as failed:
                note("start-put-off", process=process_id, why=failed.message)
    await pause(_RETRY_PAUSE, unless=context.stop_asked)
