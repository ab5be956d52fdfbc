"""What a client is told by itself, for as long as its connection lasts."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from holdfast.mcp import news
from holdfast.mcp.watching import Watch

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

    from holdfast.client.notification import Notification


class Live:
    """`sessions` are those that the connection has used. `close` ends all that was begun."""

    def __init__(self, session: ServerSession, is_channel: bool = False) -> None:
        self._session = session
        self._is_channel = is_channel
        self._level: str | None = None
        self._sessions: set[str] = set()
        self._telling: dict[str, asyncio.Task[None]] = {}
        self.watch = Watch(session.send_resource_updated, session.send_resource_list_changed)

    def uses(self, session: str) -> None:
        """From now on, the news of this session is told, if the client asked for that."""
        self._sessions.add(session)
        if self._is_channel:
            self._tell(f"channel {session}", news.tell_and_consume(session, self._on_channel))
        if self._level is not None:
            self._tell(f"log {session}", news.tell(session, self._as_log))

    def set_level(self, level: str) -> None:
        """The client wants log messages from this level on."""
        self._level = level
        for session in list(self._sessions):
            self.uses(session)

    async def close(self) -> None:
        tasks = list(self._telling.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self.watch.close()

    def _tell(self, key: str, work: Coroutine[Any, Any, None]) -> None:
        running = self._telling.get(key)
        if running is None or running.done():
            self._telling[key] = asyncio.create_task(work)
        else:
            work.close()

    async def _on_channel(self, notice: Notification) -> None:
        await news.send_on_channel(self._session, notice)

    async def _as_log(self, notice: Notification) -> None:
        if self._level is not None:
            await news.send_as_log(self._session, notice, self._level)


class OneLive:
    """That of the only client, on stdio."""

    def __init__(self, is_channel: bool) -> None:
        self._is_channel = is_channel
        self._live: Live | None = None

    def __call__(self, ctx: Any) -> Live:
        if self._live is None:
            self._live = Live(ctx.session, self._is_channel)
        return self._live

    async def close(self) -> None:
        if self._live is not None:
            await self._live.close()


def live_of_connection(ctx: Any) -> Live:
    """That of one of many clients. It ends with the connection of the protocol."""
    # The SDK keeps the connection, whose end nothing else tells, to itself.
    connection = ctx.session._connection
    found: Live | None = connection.state.get("holdfast")
    if found is None:
        found = connection.state["holdfast"] = Live(ctx.session)
        connection.exit_stack.push_async_callback(found.close)
    return found
