"""The tools for whoever blocks: the same calls, on an event loop of their own in a thread."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

from holdfast.tools.aio import AsyncTools
from holdfast.tools.envelope import Answer
from holdfast.tools.limits import Limits

T = TypeVar("T")

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

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """The outcome. Whoever is torn away from it (KeyboardInterrupt) has it cancelled, and seen to its end."""
        is_over = threading.Event()
        future = asyncio.run_coroutine_threadsafe(_whole(work, is_over), self.loop)
        try:
            return future.result()
        except BaseException:
            if not future.done():
                future.cancel()
                is_over.wait(_FAREWELL)
            raise

    def close(self) -> None:
        if self.pid != os.getpid():  # the thread stayed with our parent
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


async def _whole(work: Coroutine[Any, Any, T], is_over: threading.Event) -> T:
    try:
        return await work
    finally:
        is_over.set()


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
        self._tools = AsyncTools(session, **self._made)
        self.session = self._tools.session

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Calls under way are interrupted; the processes go on."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None and loop.pid == os.getpid():
            loop.do(self._tools.close())
            loop.close()

    def terminal(self, *values: object, **arguments: object) -> str:
        """Run a command. The arguments of TERMINAL_SCHEMA, by name or in its order."""
        return self._running().do(self._tools.terminal(*values, **arguments))

    def process(self, *values: object, **arguments: object) -> str:
        """Do something with a process. The arguments of PROCESS_SCHEMA, by name or in its order."""
        return self._running().do(self._tools.process(*values, **arguments))

    def call(self, name: object, arguments: object = None) -> str:
        """A call as a model makes it: `arguments` are an object, or JSON."""
        return self._running().do(self._tools.call(name, arguments))

    def answer(self, name: object, arguments: object = None) -> Answer:
        """As `call`, but the answer as an object."""
        return self._running().do(self._tools.answer(name, arguments))

    def interrupt(self) -> int:
        """End the foreground command, or the wait, of this session, here and wherever else; background ones go on.

        How many calls were under way here. Raises HoldfastError where others cannot be told.
        """
        return self._running().do(self._tools.interrupt())

    def start(self, work: str, *arguments: object, **named: object) -> asyncio.Future[Any]:
        """A call of the async tools by its name, to be awaited on the loop that is running here."""
        coroutine = getattr(self._tools, work)(*arguments, **named)
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._running().loop))

    def _running(self) -> Loop:
        with self._lock:
            if self._loop is None or self._loop.pid != os.getpid():
                if self._loop is not None:  # a fork: neither the thread nor the connection came along
                    self._tools = AsyncTools(self._session, **self._made)
                self._loop = Loop()
            return self._loop
