"""What a client is sent by itself while its connection lasts: notices, and changes of resources.

Notices come as log messages, which consume nothing, or on a channel, where a notice that was sent is acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, cast, get_args

from mcp import types

from holdfast.client.aio import AsyncClient
from holdfast.errors import HoldfastError, NotFound

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

    from holdfast.client.results.notification import Notification

#: The capability that a client looks for, and the topic of its messages.
CHANNEL = "claude/channel"
_METHOD: TypeAlias = Literal["notifications/claude/channel"]
LEVELS: tuple[str, ...] = get_args(types.LoggingLevel)
_RETRY_DELAY = 1.0
_MOST_SENT = 10_000

UPDATE_INTERVAL = 1.0
#: A read waits for output so long. A new one would start a daemon that was stopped on purpose.
_READ_TIMEOUT = 86_400.0
_LIST_EVENTS = frozenset({"process.started", "process.ended", "process.transferred", "session.rename"})

Updated: TypeAlias = Callable[[str], Awaitable[None]]
ListChanged: TypeAlias = Callable[[], Awaitable[None]]
Send: TypeAlias = Callable[["Notification"], Awaitable[None]]


class ChannelNotification(types.Notification[dict[str, Any], _METHOD]):
    method: _METHOD = "notifications/claude/channel"
    params: dict[str, Any]


class Push:
    """One connection. `close` ends all that was begun."""

    def __init__(self, session: ServerSession, is_channel: bool = False) -> None:
        self._session = session
        self._is_channel = is_channel
        self._level: str | None = None
        self._sessions: set[str] = set()
        self._tasks = KeyedTasks()

    @cached_property
    def watch(self) -> ResourceWatch:
        return ResourceWatch(self._session.send_resource_updated, self._session.send_resource_list_changed)

    def uses(self, session: str) -> None:
        """From now on, the notices of this session are sent, if the client asked for that."""
        self._sessions.add(session)
        if self._is_channel:
            self._tasks.start(f"channel {session}", send_and_acknowledge(session, self._on_channel))
        if self._level is not None:
            self._tasks.start(f"log {session}", send(session, self._as_log))

    def set_level(self, level: str) -> None:
        """The client wants log messages from this level on."""
        self._level = level
        for session in list(self._sessions):
            self.uses(session)

    async def close(self) -> None:
        await self._tasks.close()
        await self.watch.close()

    async def _on_channel(self, notice: Notification) -> None:
        meta = {"kind": notice.kind, "process": notice.process or "", "notice": notice.id}
        message = ChannelNotification(params={"content": notice.text, "meta": meta})
        await self._session.send_notification(cast(Any, message))

    async def _as_log(self, notice: Notification) -> None:
        if self._level is not None:
            await send_as_log(self._session, notice, self._level)


class StdioPush:
    """That of the only client, on stdio."""

    def __init__(self, is_channel: bool) -> None:
        self._is_channel = is_channel
        self._push: Push | None = None

    def __call__(self, ctx: Any) -> Push:
        if self._push is None:
            self._push = Push(ctx.session, self._is_channel)
        return self._push

    async def close(self) -> None:
        if self._push is not None:
            await self._push.close()


def push_of_connection(ctx: Any) -> Push:
    """That of one of many clients. It ends with the connection of the protocol."""
    # The SDK has no public way to learn that a connection has ended.
    connection = ctx.session._connection
    found: Push | None = connection.state.get("holdfast")
    if found is None:
        found = connection.state["holdfast"] = Push(ctx.session)
        connection.exit_stack.push_async_callback(found.close)
    return found


async def send_and_acknowledge(session: str, send: Send) -> None:
    """Each notice of a session, acknowledged when it was sent. Until it is cancelled."""
    while True:
        try:
            async with AsyncClient(session, strict=True) as client, client.notices() as notices:
                async for notice in notices:  # which acknowledges the one before
                    await send(notice)
        except HoldfastError:
            await asyncio.sleep(_RETRY_DELAY)


async def send(session: str, send: Send) -> None:
    """Each notice of a session, once; it stays in the inbox. Until it is cancelled."""
    sent: dict[str, None] = {}
    while True:
        try:
            async with (
                AsyncClient(session, strict=True) as client,
                client.events("notification.queued", follow=True) as queued,
            ):
                await _send_new(client, sent, send)
                async for _ in queued:
                    await _send_new(client, sent, send)
        except HoldfastError:
            await asyncio.sleep(_RETRY_DELAY)


async def _send_new(client: AsyncClient, sent: dict[str, None], send: Send) -> None:
    for notice in await client.inbox():
        if notice.id not in sent:
            sent[notice.id] = None
            await send(notice)
    while len(sent) > _MOST_SENT:
        del sent[next(iter(sent))]


async def send_as_log(
    session: ServerSession, notice: Notification, least: str, request: types.RequestId | None = None
) -> None:
    """A log message, where the client asked for such a level."""
    is_fine = notice.kind != "completion" or notice.data.get("exit_code") == 0
    level: types.LoggingLevel = "info" if is_fine else "warning"
    if LEVELS.index(level) >= LEVELS.index(least):
        params = types.LoggingMessageNotificationParams(level=level, logger="holdfast", data=notice.text)
        await session.send_notification(types.LoggingMessageNotification(params=params), request)


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
