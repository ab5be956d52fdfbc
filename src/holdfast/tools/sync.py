"""The tools for blocking callers: those of `aio`, on an event loop in a thread; and as plain functions."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, Self

from holdfast.client import launch
from holdfast.paths import find_paths
from holdfast.tools.aio import AsyncTools, ToolPool
from holdfast.tools.answers import Answer, Limits, ToolRefusal, of_error, to_text
from holdfast.tools.arguments import named, text

#: Work that was cancelled ends within this time.
_CANCEL_TIMEOUT = 3.0
#: The plain functions keep the tools of this many sessions open.
_MOST = 32


class LoopThread:
    """An event loop in a thread, which does not keep the program from ending."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name="holdfast-tools", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def submit(self, work: Coroutine[Any, Any, Any]) -> Submitted:
        is_over = threading.Event()
        return Submitted(asyncio.run_coroutine_threadsafe(_whole(work, is_over), self.loop), is_over)

    def close(self) -> None:
        if self.pid != os.getpid():  # after a fork: the thread is in the parent
            return
        asyncio.run_coroutine_threadsafe(_cancel_others(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class Submitted(NamedTuple):
    """Work on the loop."""

    future: concurrent.futures.Future[Any]
    is_over: threading.Event

    def result(self) -> Any:
        """Where the caller is interrupted (KeyboardInterrupt), the work is cancelled, and has ended after that."""
        try:
            return self.future.result()
        except BaseException:
            if not self.future.done():
                self.future.cancel()
                self.is_over.wait(_CANCEL_TIMEOUT)
            raise


async def _whole(work: Coroutine[Any, Any, Any], is_over: threading.Event) -> Any:
    try:
        return await work
    finally:
        is_over.set()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=_CANCEL_TIMEOUT)


class Tools:
    """`terminal` and `process` of one session, for any number of threads. As AsyncTools, but blocking."""

    def __init__(
        self,
        session: str | None = None,
        *,
        home: str | os.PathLike[str] | None = None,
        url: str | None = None,
        token: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        limits: Limits | None = None,
        push: bool = False,
        options: dict[str, Any] | None = None,
    ) -> None:
        self._arguments: dict[str, Any] = {"home": home, "url": url, "token": token, "cwd": cwd, "limits": limits}
        self._arguments |= {"push": push, "options": options, "own_loop": True}
        self._lock = threading.Lock()
        self._loop: LoopThread | None = None
        self._tools = AsyncTools(session, **self._arguments)
        self.session = self._tools.session

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Calls under way are interrupted; the processes go on."""
        with self._lock:
            loop, self._loop = self._loop, None
            tools, self._tools = self._tools, AsyncTools(self.session, **self._arguments)
        if loop is not None and loop.pid == os.getpid():
            loop.submit(tools.close()).result()
            loop.close()

    def terminal(self, *values: object, **arguments: object) -> str:
        """Run a command. The arguments of TERMINAL_SCHEMA, by name or in its order."""
        return self.call("terminal", named("terminal", values, arguments))

    def process(self, *values: object, **arguments: object) -> str:
        """Do something with a process. The arguments of PROCESS_SCHEMA, by name or in its order."""
        return self.call("process", named("process", values, arguments))

    def call(self, name: object, arguments: object = None) -> str:
        """A call as a model makes it: `arguments` are an object, or JSON."""
        return to_text(self.answer(name, arguments))

    def answer(self, name: object, arguments: object = None) -> Answer:
        """As `call`, but the answer as an object."""
        made: Answer = self.submit("answer", name, arguments).result()
        return made

    def interrupt(self) -> int:
        """End the foreground command, or the wait, of this session, in all programs; background ones go on.

        How many calls were under way here. Raises HoldfastError where other programs cannot be reached.
        """
        return int(self.submit("interrupt").result())

    def submit(self, method: str, *arguments: object) -> Submitted:
        """A call of the async tools. Under the lock, so that a loop which is closed meanwhile ends it, too."""
        with self._lock:
            if self._loop is None or self._loop.pid != os.getpid():
                if self._loop is not None:  # a fork: neither the thread nor the connection came along
                    self._tools = AsyncTools(self.session, **self._arguments)
                self._loop = LoopThread()
            return self._loop.submit(getattr(self._tools, method)(*arguments))


#: The loop and the tools of the plain functions, by the instance's home and the session.
_loop: LoopThread | None = None
_pool: ToolPool[tuple[str, str]]
_lock = threading.Lock()


def terminal(*values: object, **arguments: object) -> str:
    """Run a command: the arguments of TERMINAL_SCHEMA, by name or in its order, and `session`.

    The answer is JSON. Nothing raises.
    """
    return str(_submit(_call("terminal", values, arguments)).result())


def process(*values: object, **arguments: object) -> str:
    """Do something with a process: the arguments of PROCESS_SCHEMA, by name or in its order, and `session`.

    The answer is JSON. Nothing raises.
    """
    return str(_submit(_call("process", values, arguments)).result())


async def aterminal(*values: object, **arguments: object) -> str:
    """As `terminal`, for asyncio."""
    return str(await asyncio.wrap_future(_submit(_call("terminal", values, arguments)).future))


async def aprocess(*values: object, **arguments: object) -> str:
    """As `process`, for asyncio."""
    return str(await asyncio.wrap_future(_submit(_call("process", values, arguments)).future))


def interrupt(session: str | None = None) -> int:
    """End the foreground command, or the wait, of the session, in all programs; background ones go on."""
    return int(_submit(_interrupt(session)).result())


def close_all() -> None:
    """Close the tools of the plain functions."""
    global _loop
    with _lock:
        loop, _loop = _loop, None
    if loop is not None and loop.pid == os.getpid():
        loop.submit(_pool.close()).result()
        loop.close()


def _submit(work: Coroutine[Any, Any, Any]) -> Submitted:
    global _loop, _pool
    with _lock:
        if _loop is None or _loop.pid != os.getpid():
            _loop, _pool = LoopThread(), ToolPool(lambda key: AsyncTools(key[1]), _MOST)
        return _loop.submit(work)


async def _call(name: str, values: Sequence[object], arguments: Mapping[str, object]) -> str:
    given = named(name, values, arguments)
    try:
        session = text(given, "session", 1024)
    except ToolRefusal as refusal:
        return to_text(of_error(refusal))
    given.pop("session", None)
    async with _pool.using(_key(session or None)) as tools:
        return await tools.call(name, given)


async def _interrupt(session: str | None) -> int:
    async with _pool.using(_key(session)) as tools:
        return await tools.interrupt()


def _key(session: str | None) -> tuple[str, str]:
    """The tools of a session of the instance that HOLDFAST_HOME names now."""
    return find_paths().home, launch.session_of(session)
