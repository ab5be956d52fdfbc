"""What front ends on the machine of the daemon use to talk to the agent of a session: command line, terminal UI.

The daemon starts the agent and passes messages on (`agent_send`); a front end that is closed or killed ends none. What
happens is read from the session log, and shown while it happens from events that are not kept (`tui.*`).
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator
from typing import Any

from holdfast import session_log
from holdfast.client import launch
from holdfast.client.aio import AsyncClient
from holdfast.errors import BadValue, NotFound
from holdfast.session_log import LogEntry

_POLL = 0.05
#: As the operation takes it.
_LONGEST_MESSAGE = 200 << 10


class AgentFront:
    """One session, for one front end. `client` is a free one: a held command cannot speak for the user."""

    def __init__(self, client: AsyncClient, session: str, acp: str | None = None) -> None:
        """`acp`: the program that is the agent of a new session. Raises BadValue for an invalid session."""
        self._client = client
        self._home = client.paths.home
        self.session = session
        self._acp = acp
        self.path = session_log.path_of(self._home, session)

    @property
    def is_running(self) -> bool:
        return session_log.is_held(self._home, self.session)

    def entries(self) -> list[LogEntry]:
        """The log; empty where there is none yet."""
        try:
            return session_log.read(self.path)
        except NotFound:
            return []

    async def send(self, text: str, chosen: str | None = None) -> str:
        """A message of the user; its id, which its log entry has as `input`. It is in the log when this returns.

        What the agent does is interrupted. `chosen`: an id of `new_input`. Raises HoldfastError.
        """
        if len(text.encode(errors="surrogatepass")) > _LONGEST_MESSAGE:
            raise BadValue(f"the message is longer than {_LONGEST_MESSAGE >> 10} KiB", next="put it into a file")
        chosen = chosen or new_input()
        await self._client.agent_send(self.session, text, id=chosen, **self._launch())
        return chosen

    async def set(self, *, model: str | None = None, base_url: str | None = None, toolset: str | None = None) -> None:
        """Change settings of the session, from the next step on."""
        if model or base_url or toolset:
            chosen = {"model": model or None, "base_url": base_url or None, "toolset": toolset or None}
            await self._client.agent_settings(self.session, **{**self._launch(), **chosen})

    async def compact(self) -> None:
        await self._client.agent_control(self.session, "compact")

    async def stop(self) -> None:
        """The agent ends after what it does now; processes go on. The next message starts it again."""
        await self._client.agent_control(self.session, "stop")

    async def interrupt(self) -> None:
        """End what the agent does now. Background processes go on."""
        await self._client.agent_control(self.session, "interrupt")

    async def start(self) -> None:
        """Start the agent unless it runs: what is pending for the session is taken up."""
        if not self.is_running:
            await self._client.agent_start(self.session, **self._launch())

    def _launch(self) -> dict[str, Any]:
        """What an agent that is started by this gets from here."""
        directory, _ = launch.directory()
        return {"env": dict(os.environ), "cwd": directory, "umask": launch.umask(), "acp": self._acp}

    async def follow(self, after: int = 0, wake: float | None = None) -> AsyncIterator[LogEntry | None]:
        """The entries behind `after`, then those that come, without end; None every `wake` seconds without one."""
        tail, idle_since = session_log.LogTail(self.path), time.monotonic()
        while True:
            for entry in tail.read() if tail.has_more else ():
                if entry.id > after:
                    yield entry
                    idle_since = time.monotonic()
            if wake is not None and time.monotonic() - idle_since >= wake:
                yield None
                idle_since = time.monotonic()
            await asyncio.sleep(_POLL)

    async def shown(self) -> AsyncIterator[dict[str, Any]]:
        """The events of the agent as they happen: what is streamed (`tui.**`), turns (`agent.*`) and tools."""
        async with self._client.events("tui.** agent.* tool.*", follow=True) as events:
            async for event in events:
                if event.get("session") == self.session:
                    yield event


def new_input() -> str:
    """An id for a message of the user."""
    return f"in_{secrets.token_hex(6)}"
