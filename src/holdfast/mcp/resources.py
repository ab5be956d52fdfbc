"""Logs and screens of the session's own processes, as resources; and subscriptions to them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from mcp import types
from mcp.shared.exceptions import MCPError

from holdfast.client.aio import AsyncClient
from holdfast.errors import HoldfastError, NotFound
from holdfast.mcp.peers import Peer
from holdfast.tools import output
from holdfast.tools.aio import find as find_process
from holdfast.tools.answers import Limits, Refusal, brief_command, was_background

if TYPE_CHECKING:
    from holdfast.client.process import Process

_TEXT = "text/plain"
_VIEWS = ("log", "screen")
_MOST_LISTED = 100
_LINES = 1000
_LONGEST_URI = 2000

UPDATE_INTERVAL = 1.0
#: A read that waits for output is repeated so often.
_READ_TIMEOUT = 60.0
_LIST_EVENTS = frozenset({"process.started", "process.ended", "process.transferred", "session.rename"})

Updated: TypeAlias = Callable[[str], Awaitable[None]]
ListChanged: TypeAlias = Callable[[], Awaitable[None]]


class ResourceName(NamedTuple):
    """What a URI names."""

    process: str
    view: str
    session: str | None


def uri_of(process: str, view: str) -> str:
    return f"holdfast://process/{quote(process)}/{view}"


def parse(uri: str) -> ResourceName:
    """Raises MCPError."""
    try:
        parts = urlsplit(uri[:_LONGEST_URI])
        words = [unquote(word) for word in parts.path.split("/")]
        query = dict(parse_qsl(parts.query))
    except ValueError:
        raise _not_found(uri) from None
    if (parts.scheme, parts.netloc) != ("holdfast", "process") or len(words) != 3 or words[2] not in _VIEWS:
        raise _not_found(uri)
    return ResourceName(words[1], words[2], query.get("session"))


def _not_found(uri: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, "no such resource", {"uri": uri[:_LONGEST_URI]})


TEMPLATES = [
    types.ResourceTemplate(
        name="log",
        title="Log of a process",
        uri_template="holdfast://process/{id}/log{?session}",
        description="The end of a process's output, as text. Secrets are masked.",
        mime_type=_TEXT,
    ),
    types.ResourceTemplate(
        name="screen",
        title="Screen of a process",
        uri_template="holdfast://process/{id}/screen{?session}",
        description="The screen of a process that has a terminal.",
        mime_type=_TEXT,
    ),
]


async def listed(session: str) -> list[types.Resource]:
    """Those of the newest background processes. Raises MCPError."""
    try:
        async with AsyncClient(session, strict=True) as client:
            found = [one for one in await client.ps(all=True, session=session, used=False) if was_background(one)]
            found.sort(key=lambda one: (one.status == "ended", -(one.started_at or 0.0)))
            found = found[:_MOST_LISTED]
            commands = await client.redact(*map(brief_command, found)) if found else []
    except HoldfastError as error:
        raise _failed(error) from None
    resources: list[types.Resource] = []
    for process, command in zip(found, commands, strict=True):
        resources += [_resource(process, command, view) for view in _VIEWS if view == "log" or process.pty]
    return resources


def _resource(process: Process, command: str, view: str) -> types.Resource:
    return types.Resource(
        uri=uri_of(process.id, view),
        name=f"{process.name or process.id} {view}",
        title=command,
        description=f"{view} of {process.id}, {process.status}",
        mime_type=_TEXT,
    )


async def find(peer: Peer, uri: str) -> tuple[str, str, ResourceName]:
    """The session and the process of a URI. Raises MCPError where the peer has none such."""
    name = parse(uri)
    try:
        session = peer.chosen(name.session)
        async with AsyncClient(session, strict=True) as client:
            return session, (await find_process(client, name.process)).id, name
    except (Refusal, NotFound):
        raise _not_found(uri) from None
    except HoldfastError as error:
        raise _failed(error) from None


async def read(peer: Peer, uri: str) -> str:
    """The text of a resource. Raises MCPError."""
    session, process, name = await find(peer, uri)
    try:
        async with AsyncClient(session, strict=True) as client:
            text = await (_log if name.view == "log" else _screen)(client, process)
            (masked,) = await client.redact(text)
            return masked
    except HoldfastError as error:
        raise _failed(error) from None


async def _log(client: AsyncClient, process: str) -> str:
    page = await client.logs(process, lines=_LINES)
    return output.fitted(page, Limits().room).text


async def _screen(client: AsyncClient, process: str) -> str:
    return (await client.screen(process)).text


def _failed(error: HoldfastError) -> MCPError:
    return MCPError(types.INTERNAL_ERROR, f"{error.message}; {error.next}", {"code": error.code})


class KeyedTasks:
    """Tasks by key: one at a time for each."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, key: str, work: Coroutine[Any, Any, None]) -> None:
        """Start the work, unless that of its key runs."""
        running = self._tasks.get(key)
        if running is None or running.done():
            self._tasks[key] = asyncio.create_task(work)
        else:
            work.close()

    def stop(self, key: str) -> None:
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


class ResourceWatch:
    """The subscriptions of one client: updates at most once a second. `close` ends them; so does `async with`."""

    def __init__(self, updated: Updated, list_changed: ListChanged) -> None:
        self._updated = updated
        self._list_changed = list_changed
        self._uris: dict[str, set[str]] = {}
        self._tasks = KeyedTasks()
        self._has_changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def size(self) -> int:
        """The number of resources that are subscribed to."""
        return sum(map(len, self._uris.values()))

    def follow(self, session: str) -> None:
        """Follow the processes of a session."""
        self._tasks.start(f"session {session}", self._follow_session(session))
        self._tasks.start("list", self._send_list_changes())

    def subscribe(self, session: str, process: str, uri: str) -> None:
        self._uris.setdefault(process, set()).add(uri)
        self.follow(session)
        self._tasks.start(f"process {process}", self._follow_process(session, process))

    def unsubscribe(self, uri: str) -> None:
        for process, uris in list(self._uris.items()):
            uris.discard(uri)
            if not uris:
                del self._uris[process]
                self._tasks.stop(f"process {process}")

    async def close(self) -> None:
        await self._tasks.close()

    async def _follow_session(self, session: str) -> None:
        while True:
            try:
                async with (
                    AsyncClient(session, strict=True) as client,
                    client.events("process.* session.*", follow=True) as events,
                ):
                    async for event in events:
                        await self._take(event)
            except HoldfastError:
                await asyncio.sleep(UPDATE_INTERVAL)

    async def _take(self, event: dict[str, Any]) -> None:
        if event.get("type") in _LIST_EVENTS:
            self._has_changed.set()
        process = str(event.get("id"))
        is_restart = event.get("type") == "process.started" and bool(event.get("run"))
        if is_restart and process in self._uris:  # its output goes on
            self._tasks.start(f"process {process}", self._follow_process(str(event.get("session")), process))
        if is_restart or event.get("type") == "process.ended":
            await self._send_updated(process)

    async def _send_list_changes(self) -> None:
        while True:
            await self._has_changed.wait()
            self._has_changed.clear()
            await self._list_changed()
            await asyncio.sleep(UPDATE_INTERVAL)

    async def _send_updated(self, process: str) -> None:
        for uri in sorted(self._uris.get(process, ())):
            await self._updated(uri)

    async def _follow_process(self, session: str, process: str) -> None:
        """Until nothing can write to it any more; its end is an event."""
        offset: int | None = None
        async with AsyncClient(session, strict=True) as client:
            while True:
                try:
                    if offset is None:
                        offset = (await client.inspect(process)).output_bytes
                    page = await client.logs(process, offset=offset, bytes=4096, raw=True, wait=_READ_TIMEOUT)
                except NotFound:
                    return
                except HoldfastError:
                    await asyncio.sleep(UPDATE_INTERVAL)
                    continue
                if page.total > offset:
                    offset = page.total
                    await self._send_updated(process)
                    await asyncio.sleep(UPDATE_INTERVAL)
                elif page.closed:
                    return
