"""A daemon's delivery in one thread, step by step: the real store, inbox, sessions, handlers and conversations.

Nothing happens by itself: the loop runs when it is told to, and the disk commits when it is told to. So every
interleaving can be made again, and the daemon can die between any two steps.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.core.registry import Registry, process_object
from holdfast.daemon.core.supervisor import Supervisor
from holdfast.daemon.core.tasks import BackgroundTasks
from holdfast.daemon.listener.accepting import Caller, CallerAncestry
from holdfast.daemon.listener.connection import SocketConnection
from holdfast.daemon.notices.inbox import _EARLIER, SessionInboxes
from holdfast.daemon.notices.sessions import Names, SessionOwnership
from holdfast.daemon.streams.tails import Tail
from holdfast.errors import DiskFull, HoldfastError
from holdfast.model.events import of_process, queued
from holdfast.model.lifecycle import Ended, Exited
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.records import replace
from holdfast.store import store as stores
from holdfast.store.replies import ReplyRecord
from holdfast.store.writer import RowChange, Writer
from holdfast.wire import frames
from tests.model import made


class SteppedWriter(Writer):
    """Commits when it is told to, in the thread of whoever tells it."""

    is_full = False

    def __init__(self, *arguments: Any) -> None:
        with mock.patch.object(threading, "Thread"):
            super().__init__(*arguments)

    def step(self) -> None:
        """One commit of all that waits."""
        self._due = 0.0
        wanted, waiters = self._next_batch(None)
        self._run_tasks()
        if wanted:
            self._write(wanted, waiters)

    def _try(self, changes: list[RowChange]) -> HoldfastError | None:
        return DiskFull("no room to record the process") if self.is_full else super()._try(changes)


class Daemon:
    """One life of the daemon, from opening the store to its death."""

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.is_alive = True
        loop.run_until_complete(self._open(path))

    async def _open(self, path: Path) -> None:
        with mock.patch.object(stores, "Writer", SteppedWriter):
            connection, found, kept, _ = stores._open(str(path))
            store = stores.Store(connection, str(path), lambda _: None)
        self.connection = connection
        self.writer = cast(SteppedWriter, store._writer)
        self.registry, self.background = Registry(), BackgroundTasks()
        for process in found:
            self.registry.put(process)
        names = Names(kept.aliases)
        self.inbox = SessionInboxes(
            store, ReplyRecord(f"{path}-replies"), kept.pending, names.resolve, self.registry.owner
        )
        store.on_events.append(self.inbox.arrived)
        self.supervisor = Supervisor(self.registry, store, self.background, claimed=self.inbox.claimed)
        self.store = store
        self.sessions = SessionOwnership(names, self.registry, self.inbox, store, self.supervisor.turn)
        self.context = cast(DaemonContext, self._context())

    def _context(self) -> SimpleNamespace:
        async def read(*_: object) -> Tail:
            await asyncio.sleep(0)
            return Tail("", False)

        async def show_fresh(processes: list[HeldProcess]) -> list[dict[str, Any]]:
            await asyncio.sleep(0)
            return [show(process) for process in processes]

        async def mask(data: list[dict[str, Any]], session: str | None) -> list[dict[str, Any]]:
            await asyncio.sleep(0)
            return data

        def show(process: HeldProcess) -> dict[str, Any]:
            return process_object(process, time.time(), 60.0)

        context = SimpleNamespace(
            registry=self.registry,
            store=self.store,
            inbox=self.inbox,
            sessions=self.sessions,
            supervisor=self.supervisor,
            background=self.background,
            ancestry=CallerAncestry(self.registry, cast(Any, None)),
            approvals=SimpleNamespace(askers={}, is_leaving=False),
            settings=SimpleNamespace(wait_limit=0.0),
            place=None,
            keeper=SimpleNamespace(release=None),
            read=read,
            secrets=SimpleNamespace(mask=mask),
            show=show,
            show_fresh=show_fresh,
        )
        context.current_name = lambda session: DaemonContext.current_name(context, session)  # type: ignore[arg-type]
        return context

    # What can happen.

    @contextmanager
    def inside(self) -> Iterator[None]:
        """As if the loop called."""
        asyncio._set_running_loop(self.loop)
        try:
            yield
        finally:
            asyncio._set_running_loop(None)

    def turn_loop(self, times: int = 1) -> None:
        for _ in range(times):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    def commit(self) -> None:
        """The disk has it; nobody has heard of that yet."""
        self.writer.step()

    def settle(self) -> None:
        """Until nothing moves any more."""
        quiet = 0
        while quiet < 2:
            self.turn_loop(8)
            quiet = quiet + 1 if not self.writer._pending else 0
            self.commit()
        self.turn_loop(8)

    def start(self, process: HeldProcess) -> None:
        self.supervisor.show(process)

    def end(self, process_id: ProcessId) -> None:
        with self.inside():
            self.background.start(self._end(process_id), "end")

    async def _end(self, process_id: ProcessId) -> None:
        async with self.supervisor.turn(process_id):
            process = self.registry.get(process_id)
            if process is not None and process.is_active:
                await self.supervisor.end(replace(process, state=Ended(Exited(0), 9.0, 1, 1.0, 9.0)))

    def news(self, process_id: ProcessId, number: int, known: HeldProcess | None = None) -> None:
        """Something else to be told of it, as a stall would be: written behind. `known`: as somebody believes it is."""
        process = known or self.registry.get(process_id)
        assert process is not None
        notice = of_process(process, "stalled", f"stalled:{number}", float(number), {"number": number})
        self.store.record_soon(queued(notice))

    def nobody_came_back(self) -> None:
        """The time is over in which those who were being told something may come back."""
        self.inbox.release(self.inbox._replies.all_of(_EARLIER), _EARLIER)

    def die(self) -> None:
        """As SIGKILL: what is not committed is gone, and nothing of this one is heard of any more."""
        self.is_alive = False
        self.connection.close()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.turn_loop(4)


class Wire:
    """Both ends of a connection: what the daemon wrote, until the peer hears it."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._unheard: list[bytes] = []
        self._decoder = frames.FrameDecoder()
        self.conversation = SocketConnection(daemon.context, Caller(os.getpid(), None), lambda _: None)
        self.conversation.connection_made(cast(asyncio.BaseTransport, self))

    def set_write_buffer_limits(self, high: int) -> None:
        return

    def get_extra_info(self, name: str) -> Wire:
        """The socket, of which only its peer is asked for: this program."""
        return self

    def fileno(self) -> int:
        return self._left.fileno()

    def getsockopt(self, *_: int) -> bytes:
        return struct.pack("3i", os.getpid(), os.getuid(), os.getgid())

    def write(self, data: bytes) -> None:
        if self._daemon.is_alive:
            self._unheard.append(data)

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        raise AssertionError("the daemon hung up")

    def say(self, message: dict[str, Any]) -> None:
        if self._daemon.is_alive:
            with self._daemon.inside():
                self.conversation.data_received(frames.encode(message))

    def receive(self) -> list[dict[str, Any]]:
        data, self._unheard = b"".join(self._unheard), []
        return cast(list[dict[str, Any]], self._decoder.feed(data))

    def close(self) -> None:
        if self._daemon.is_alive:
            with self._daemon.inside():
                self.conversation.connection_lost(None)

    def break_off(self, *last_words: dict[str, Any]) -> None:
        """The client says something and goes; the daemon notices the latter first, as it writes."""
        self._left, said = socket.socketpair()
        with said:
            said.sendall(b"".join(map(frames.encode, last_words)))
        with self._left, self._daemon.inside():
            self.conversation.connection_lost(BrokenPipeError())


def process(number: int, session: str) -> HeldProcess:
    return made.process(number, session=session)
