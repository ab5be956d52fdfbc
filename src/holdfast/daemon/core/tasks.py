"""Tasks of the daemon, and how they wait: locks by key, signals of changes, the first of several, reading by cursor."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from holdfast.daemon.core.log import note
from holdfast.errors import HoldfastError

Key = TypeVar("Key")
Inner = TypeVar("Inner")
Value = TypeVar("Value")
Cursor = TypeVar("Cursor")
Found = TypeVar("Found")


class BackgroundTasks:
    """Tasks of the daemon as a whole: they have one owner, and every failure is logged."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run it until it ends, or until `close`."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def close(self) -> None:
        """Cancel the tasks that are left and wait for them."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (failure := task.exception()) is None:
            return
        why = failure.message if isinstance(failure, HoldfastError) else "".join(traceback.format_exception(failure))
        note("task-failed", task=task.get_name(), why=why)


class KeyedLocks(Generic[Key]):
    """A lock for each key. First come, first served."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()

    def __getitem__(self, key: Key) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())

    def is_held(self, key: Key) -> bool:
        lock = self._locks.get(key)
        return lock is not None and lock.locked()


class ChangeSignals(Generic[Key]):
    """Wakes the tasks that wait for changes of some keys."""

    def __init__(self) -> None:
        self._events: dict[Key, dict[asyncio.Event, None]] = {}

    def send(self, key: Key) -> None:
        """This one has changed."""
        for event in self._events.get(key, ()):
            event.set()

    def is_heard(self, key: Key) -> bool:
        """Whether a task waits for changes of this one."""
        return key in self._events

    def send_all(self) -> None:
        """Any of them may have changed."""
        for key in self._events:
            self.send(key)

    @contextlib.contextmanager
    def listening(self, *keys: Key) -> Iterator[asyncio.Event]:
        """An event that is set at every change of one of the keys."""
        changed = asyncio.Event()
        for key in keys:
            self._events.setdefault(key, {})[changed] = None
        try:
            yield changed
        finally:
            for key in keys:
                drop(self._events, key, changed)


def drop(index: dict[Key, dict[Inner, Value]], key: Key, inner: Inner) -> None:
    """Remove an entry, if it is there, and its key with the last entry."""
    entries = index.get(key)
    if entries is not None:
        entries.pop(inner, None)
        if not entries:
            del index[key]


async def pause(seconds: float, unless: asyncio.Event) -> None:
    """Returns after this time, or as soon as the event is set."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await unless.wait()


async def first_of(*waits: Awaitable[Any], timeout: float | None = None) -> set[asyncio.Future[Any]]:
    """Those that are done first; none after the timeout. The others are cancelled. Raises what one of those raises."""
    begun: set[asyncio.Future[Any]] = {asyncio.ensure_future(wait) for wait in waits}
    try:
        done, _ = await asyncio.wait(begun, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        for wait in done:
            wait.result()
        return done
    finally:
        for wait in begun:
            wait.cancel()


async def follow(
    after: Cursor,
    read: Callable[[Cursor], Awaitable[tuple[Cursor, Found] | None]],
    wait: Callable[[Cursor], Awaitable[bool]],
) -> AsyncGenerator[Found, None]:
    """Every batch behind the cursor, in order, each once. Events, notices and logs are followed with it.

    `read` gives the next batch and the cursor behind it, or None when there is nothing yet. `wait` returns when it is
    worth reading again; False ends it.
    """
    while True:
        while (found := await read(after)) is not None:
            after, batch = found
            yield batch
        if not await wait(after):
            return
