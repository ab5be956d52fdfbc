"""The tools for whoever blocks: the same calls, on an event loop of their own in a thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Coroutine
from typing import Any, NamedTuple, Self

from holdfast.tools.aio import AsyncTools
from holdfast.tools.envelope import Answer
from holdfast.tools.limits import Limits

#: What was given up is ended within this time.
_FAREWELL = 3.0


class Loop:
    """An event loop that runs in a thread, which does not keep the program from ending."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name="holdfast-tools", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def begin(self, work: Coroutine[Any, Any, Any]) -> Begun:
        is_over = threading.Event()
        return Begun(asyncio.run_coroutine_threadsafe(_whole(work, is_over), self.loop), is_over)

    def close(self) -> None:
        if self.pid != os.getpid():  # the thread stayed with our parent
            return
        asyncio.run_coroutine_threadsafe(_end_others(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class Begun(NamedTuple):
    """Work on the loop."""

    future: concurrent.futures.Future[Any]
    is_over: threading.Event

    def outcome(self) -> Any:
        """Whoever is torn away from it (KeyboardInterrupt) has it cancelled, and seen to its end."""
        try:
            return self.future.result()
        except BaseException:
            if not self.future.done():
                self.future.cancel()
                self.is_over.wait(_FAREWELL)
            raise


async def _whole(work: Coroutine[Any, Any, Any], is_over: threading.Event) -> Any:
    try:
        return await work
    finally:
        is_over.set()


async def _end_others() -> None:
    """Nobody is left waiting for what will not go on."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=_FAREWELL)


class Tools:
    """`terminal` and `process` of one session, for as many threads as like. As AsyncTools, but blocking."""

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
        self._made: dict[str, Any] = {"home": home, "url": url, "token": token, "cwd": cwd, "limits": limits}
        self._made |= {"push": push, "options": options}
        self._session = session
        self._lock = threading.Lock()
        self._loop: Loop | None = None
        self._tools = self._new()
        self.session = self._tools.session

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Calls under way are interrupted; the processes go on."""
        with self._lock:
            loop, self._loop = self._loop, None
            tools, self._tools = self._tools, self._new()
        if loop is not None and loop.pid == os.getpid():
            loop.begin(tools.close()).outcome()
            loop.close()

    def terminal(self, *values: object, **arguments: object) -> str:
        """Run a command. The arguments of TERMINAL_SCHEMA, by name or in its order."""
        return str(self._begin("terminal", *values, **arguments).outcome())

    def process(self, *values: object, **arguments: object) -> str:
        """Do something with a process. The arguments of PROCESS_SCHEMA, by name or in its order."""
        return str(self._begin("process", *values, **arguments).outcome())

    def call(self, name: object, arguments: object = None) -> str:
        """A call as a model makes it: `arguments` are an object, or JSON."""
        return str(self._begin("call", name, arguments).outcome())

    def answer(self, name: object, arguments: object = None) -> Answer:
        """As `call`, but the answer as an object."""
        made: Answer = self._begin("answer", name, arguments).outcome()
        return made

    def interrupt(self) -> int:
        """End the foreground command, or the wait, of this session, here and wherever else; background ones go on.

        How many calls were under way here. Raises HoldfastError where others cannot be told.
        """
        return int(self._begin("interrupt").outcome())

    def start(self, work: str, *arguments: object, **named: object) -> asyncio.Future[Any]:
        """A call of the async tools by its name, to be awaited on the loop that is running here."""
        return asyncio.wrap_future(self._begin(work, *arguments, **named).future)

    def _begin(self, work: str, /, *arguments: object, **named: object) -> Begun:
        """Under the lock, so that a loop which is closed meanwhile ends it, too."""
        with self._lock:
            if self._loop is None or self._loop.pid != os.getpid():
                if self._loop is not None:  # a fork: neither the thread nor the connection came along
                    self._tools = self._new()
                self._loop = Loop()
            return self._loop.begin(getattr(self._tools, work)(*arguments, **named))

    def _new(self) -> AsyncTools:
        return AsyncTools(self._session, **self._made)
