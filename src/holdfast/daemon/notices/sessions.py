"""Sessions: towner current and former names, and moving processes and notices from one to another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from holdfast.daemon.core.registry import Registry
from holdfast.daemon.notices.inbox import SessionInboxes
from holdfast.model.events import Event, Notice
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.records import Struct, replace
from holdfast.store import rows
from holdfast.store.store import Store

#: A session without a running process for this long is reset: its next process is the first of a new session.
IDLE = 86400.0


class Names:
    """Which name each session has now, and which sessions are known."""

    def __init__(self, aliases: dict[str, str], processes: Iterable[HeldProcess] = (), now: float = 0.0) -> None:
        self._aliases = aliases
        #: Session -> when it last had a running process. Those that were idle for longer were reset.
        self._active: dict[str, float] = {}
        for process in processes:
            session, at = process.meta.session, (process.ended_at or process.started_at or process.meta.requested_at)
            at = now if process.is_active else at
            if now - at < IDLE:
                self._active[session] = max(at, self._active.get(session, at))

    def begins(self, session: str) -> bool:
        """Whether it was unknown; from now on it is known."""
        is_new = session not in self._active
        self._active[session] = time.time()
        return is_new

    def knows(self, session: str) -> bool:
        return session in self._active

    def ends(self, session: str) -> None:
        self._active.pop(session, None)

    def idle(self, running: Iterable[str], now: float) -> dict[str, float]:
        """Sessions that have been idle for too long, and since when; they are unknown from now on."""
        self._active.update(dict.fromkeys(running, now))
        found = {session: at for session, at in self._active.items() if now - at >= IDLE}
        for session in found:
            self.ends(session)
        return found

    def resolve(self, name: str) -> str:
        return self._aliases.get(name, name)

    def renamed(self, old: str, new: str) -> None:
        self._aliases = {name: new if now == old else now for name, now in self._aliases.items() if name != new}
        self._aliases[old] = new
        if (at := self._active.pop(old, None)) is not None:
            self._active[new] = max(at, self._active.get(new, at))


class EndedSession(Struct, frozen=True):
    """What became of the processes and notices of an ended session."""

    passed: list[ProcessId]
    left: list[ProcessId]
    notices: list[str]
    """Those that passed to another session."""


class SessionOwnership:
    """`turn` gives the lock under which a process is changed."""

    def __init__(
        self,
        names: Names,
        registry: Registry,
        inbox: SessionInboxes,
        store: Store,
        turn: Callable[[ProcessId], asyncio.Lock],
    ) -> None:
        self._names = names
        self._turn = turn
        self._moving = asyncio.Lock()
        #: Called with the old and the new name, and with a process and its new owner, before that is written.
        self.on_rename: list[Callable[[str, str], None]] = []
        self.on_transfer: list[Callable[[ProcessId, str], None]] = []
        self._registry = registry
        self._inbox = inbox
        self._store = store

    def resolve(self, name: str) -> str:
        """The name that it has now."""
        return self._names.resolve(name)

    async def rename(self, old: str, new: str) -> tuple[list[HeldProcess], list[str]]:
        """In one transaction, on disk when it returns: all that the old name owns or will own belongs to the new."""
        await self._inbox.all_arrived(old)
        owned = [process.id for process in self._registry.all.values() if process.meta.session == old]
        async with self._turns(owned) as found:
            processes = [process for process in found if process.meta.session == old]
            ids = [process.id for process in processes]
            event = Event("session.rename", time.time(), {"session": new, "was": old, "processes": ids})
            self._names.renamed(old, new)
            for listener in self.on_rename:
                listener(old, new)
            notices = await self._move(processes, lambda: self._inbox.all_of(old), new, [event], renamed_from=old)
        self._inbox.signal(old)
        return processes, notices

    async def transfer(self, ids: Iterable[ProcessId], to: str) -> list[str]:
        """Give them to another session, with towner pending notices. On disk when it returns."""
        await self._inbox.all_arrived()
        async with self._turns(ids) as processes:
            to = self.resolve(to)
            moving = [process for process in processes if process.meta.session != to]
            for listener in self.on_transfer:
                for process in moving:
                    listener(process.id, to)
            happened = [_transferred(process, to) for process in moving]
            return await self._move(moving, lambda: self._notices_of(moving), to, happened)

    def _notices_of(self, processes: list[HeldProcess]) -> list[Notice]:
        return [notice for process in processes for notice in self._inbox.pending_of(process.id)]

    async def close(self, session: str, to: str | None, ended: list[ProcessId]) -> EndedSession:
        """End the session. Its running processes and pending notices pass to another one, where there is one."""
        await self._inbox.all_arrived(session)
        running = [process.id for process in self._registry.active() if process.meta.session == session]
        async with self._turns(running) as found:
            living = [process for process in found if process.is_active and process.meta.session == session]
            new_owner = self.resolve(to) if to is not None else session
            passing = living if to is not None else []
            passed = [process.id for process in passing]
            left = [process.id for process in living if to is None]
            fields = {"session": session, "to": to, "ended": ended, "passed": passed, "left": left}
            happened = [_transferred(process, new_owner) for process in passing]
            if ended or living or self._is_known(session):
                happened.append(Event("session.end", time.time(), fields))
            for listener in self.on_transfer:
                for process in passing:
                    listener(process.id, new_owner)
            pending = partial(self._inbox.all_of, session) if to is not None else list[Notice]
            notices = await self._move(passing, pending, new_owner, happened)
            if not left:
                self._names.ends(session)
        return EndedSession(passed, left, notices)

    def _is_known(self, session: str) -> bool:
        """Whether it has, or had lately, a process or a notice."""
        owners = (process.meta.session for process in self._registry.all.values())
        return self._names.knows(session) or session in owners or bool(self._inbox.all_of(session))

    def reset_idle(self, now: float) -> None:
        """Record which sessions were reset because they were idle."""
        running = {process.meta.session for process in self._registry.active()}
        idle = self._names.idle(running, now)
        happened = [Event("session.reset", now, {"session": one, "idle_since": at}) for one, at in idle.items()]
        if happened:
            self._store.record_soon(happened)

    @asynccontextmanager
    async def _turns(self, ids: Iterable[ProcessId]) -> AsyncIterator[list[HeldProcess]]:
        """The processes as they are now, while no other task changes them."""
        async with self._moving, AsyncExitStack() as turns:
            in_order = sorted(set(ids))
            for process_id in in_order:
                await turns.enter_async_context(self._turn(process_id))
            yield [process for process_id in in_order if (process := self._registry.get(process_id)) is not None]

    async def _move(
        self,
        processes: list[HeldProcess],
        notices: Callable[[], list[Notice]],
        to: str,
        happened: list[Event],
        renamed_from: str | None = None,
    ) -> list[str]:
        """The notices that were moved, too. On a full disk the store writes it later; it takes effect all the same."""
        moved = [_owned(process, to) for process in processes]
        ids = [notice.id for notice in notices()]

        def edit(connection: rows.Connection) -> None:
            rows.address(connection, ids, to)
            if renamed_from is not None:
                rows.rename(connection, renamed_from, to, time.time())

        try:
            await self._store.change(edit, happened, moved)
        finally:
            for before, process in zip(processes, moved, strict=True):
                self._put(before, process)
            early = set(ids)
            late = [notice.id for notice in notices() if notice.id not in early]
            self._inbox.moved([*ids, *late], to, is_renamed=renamed_from is not None)
            if late:
                self._store.change_soon(lambda connection: rows.address(connection, late, to))
        return [*ids, *late]

    def _put(self, before: HeldProcess, moved: HeldProcess) -> None:
        """Show the process with its new owner, and with what changed while that was written."""
        now = self._registry.get(moved.id)
        if now is before:
            self._registry.put(moved)
        elif now is not None:
            self._registry.put(_owned(now, moved.meta.session))
            self._store.save_soon(_owned(now, moved.meta.session))


def _owned(process: HeldProcess, session: str) -> HeldProcess:
    return replace(process, meta=replace(process.meta, session=session))


def _transferred(process: HeldProcess, to: str) -> Event:
    meta = process.meta
    fields = {"id": meta.id, "name": meta.name, "session": to, "task": meta.task, "was": meta.session}
    return Event("process.transferred", time.time(), fields)
