"""Who has subscribed is told of new output and of ends, at most once a second; and that the list has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

from holdfast.errors import HoldfastError, NotFound
from holdfast.mcp.clients import open_client

PAUSE = 1.0
#: A read that waits for output is asked for anew so often.
_WAIT = 60.0
_LISTED = frozenset({"process.started", "process.ended", "process.transferred", "session.rename"})

Updated: TypeAlias = Callable[[str], Awaitable[None]]
ListChanged: TypeAlias = Callable[[], Awaitable[None]]


class Watch:
    """One client's subscriptions. `close` ends them; so does `async with`."""

    def __init__(self, updated: Updated, list_changed: ListChanged) -> None:
        self._updated = updated
        self._list_changed = list_changed
        self._uris: dict[str, set[str]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._has_changed = asyncio.Event()

    async def __aenter__(self) -> Watch:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def size(self) -> int:
        """How many resources are subscribed to."""
        return sum(map(len, self._uris.values()))

    def follow(self, session: str) -> None:
        """From now on: what comes and goes in a session."""
        self._start(f"session {session}", self._follow_session(session))
        self._start("list", self._tell_list())

    def subscribe(self, session: str, process: str, uri: str) -> None:
        self._uris.setdefault(process, set()).add(uri)
        self.follow(session)
        self._start(f"process {process}", self._follow_process(session, process))

    def unsubscribe(self, uri: str) -> None:
        for process, uris in list(self._uris.items()):
            uris.discard(uri)
            if not uris:
                del self._uris[process]
                self._stop(f"process {process}")

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _start(self, key: str, work: Coroutine[Any, Any, None]) -> None:
        running = self._tasks.get(key)
        if running is None or running.done():
            self._tasks[key] = asyncio.create_task(work)
        else:
            work.close()

    def _stop(self, key: str) -> None:
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()

    async def _follow_session(self, session: str) -> None:
        while True:
            try:
                async with open_client(session) as client, client.events("process.* session.*", follow=True) as events:
                    async for event in events:
                        await self._heard(event)
            except HoldfastError:
                await asyncio.sleep(PAUSE)

    async def _heard(self, event: dict[str, Any]) -> None:
        if event.get("type") in _LISTED:
            self._has_changed.set()
        process = str(event.get("id"))
        is_again = event.get("type") == "process.started" and bool(event.get("run"))
        if is_again and process in self._uris:  # its output goes on
            self._start(f"process {process}", self._follow_process(str(event.get("session")), process))
        if is_again or event.get("type") == "process.ended":
            await self._tell(process)

    async def _tell_list(self) -> None:
        while True:
            await self._has_changed.wait()
            self._has_changed.clear()
            await self._list_changed()
            await asyncio.sleep(PAUSE)

    async def _tell(self, process: str) -> None:
        for uri in sorted(self._uris.get(process, ())):
            await self._updated(uri)

    async def _follow_process(self, session: str, process: str) -> None:
        """Until nobody can write to it any more; its end is told by the events."""
        place: int | None = None
        async with open_client(session) as client:
            while True:
                try:
                    if place is None:
                        place = (await client.inspect(process)).output_bytes
                    page = await client.logs(process, offset=place, bytes=4096, raw=True, wait=_WAIT)
                except NotFound:
                    return
                except HoldfastError:
                    await asyncio.sleep(PAUSE)
                    continue
                if page.total > place:
                    place = page.total
                    await self._tell(process)
                    await asyncio.sleep(PAUSE)
                elif page.closed:
                    return
