"""What front ends use to talk to the agent of a session: the command line, the terminal UI.

The agent is a held process of session `agents`; a front end that is closed or killed ends none. Messages go to it as
events (`agent.input`), which are on disk before the agent acts on them. What happens is read from the session log, and
shown while it happens from events that are not kept (`tui.*`).
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from holdfast.agent import session_log
from holdfast.agent.config import BAD_CONFIG, INPUT_TOPIC
from holdfast.agent.session_log import LogEntry
from holdfast.client.aio import AsyncClient
from holdfast.errors import BadValue, HoldfastError, NotFound

#: The session that owns the agents themselves.
AGENTS = "agents"
#: The label that names the session of an agent.
LABEL = "holdfast.agent"
_POLL = 0.05
_START_TIMEOUT = 20.0
#: An event has 256 KiB at most.
_LONGEST_MESSAGE = 200 << 10
#: Restarts in a row: a run of ten seconds begins the count anew.
_RESTARTS = 20
_RESTART_DELAY = 0.2


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
        if not text.strip():
            raise BadValue("the message is empty", next="write something")
        if len(text.encode(errors="surrogatepass")) > _LONGEST_MESSAGE:
            raise BadValue(f"the message is longer than {_LONGEST_MESSAGE >> 10} KiB", next="put it into a file")
        return await self._put("message", chosen, text=text)

    async def set(self, *, model: str | None = None, base_url: str | None = None, toolset: str | None = None) -> None:
        """Change settings of the session, from the next step on."""
        given = {"model": model, "base_url": base_url, "toolset": toolset}
        await self._put("settings", **{key: value for key, value in given.items() if value})

    async def compact(self) -> None:
        await self._put("compact")

    async def stop(self) -> None:
        """The agent ends after what it does now; processes go on. The next message starts it again."""
        if self.is_running:
            await self._put("stop")

    async def interrupt(self) -> None:
        """End what the agent does now. Background processes go on."""
        await self._client.publish("session.interrupt", {"session": self.session, "by": "user"})

    async def _put(self, kind: str, chosen: str | None = None, **fields: Any) -> str:
        chosen = chosen or new_input()
        payload = {"session": self.session, "id": chosen, "kind": kind, **fields}
        seq = await self._client.publish(INPUT_TOPIC, payload)
        if kind in ("message", "settings"):
            await self._logged(seq)
        return chosen

    async def _logged(self, seq: int) -> None:
        """Until an input is in the log. An agent that ends meanwhile, because it was idle, is started again."""
        until = time.monotonic() + _START_TIMEOUT
        async for entry in self.follow(wake=0.2):
            if entry is not None and int(entry.content.get("seq") or 0) >= seq:
                return
            if entry is None and not self.is_running:
                await self.start(seq - 1)
            if time.monotonic() > until:
                raise HoldfastError("the agent does not take the message", next="holdfast ps --session agents")

    async def start(self, since: int | None = None) -> None:
        """Start the agent unless it runs. `since`: the event before its first input, for a new session."""
        if self.is_running:
            return
        for process in await self._client.ps(session=AGENTS, used=False):
            if agent_of(process) == self.session and process.status == "restarting":  # in its pause after a crash
                await self._started((await self._client.restart(process.id)).id)
                return
        if since is None:
            since = await self._client.publish("agent.open", {"session": self.session}) - 1
        command = [
            sys.executable,
            "-m",
            "holdfast.agent",
            self.session,
            str(since),
            *([self._acp] if self._acp else []),
        ]
        labels = {LABEL: self.session}
        started = await self._client.run(
            command,
            session=AGENTS,
            acts_for=self.session,
            restart="on-failure",
            restart_limit=_RESTARTS,
            restart_delay=_RESTART_DELAY,
            success_codes=[0, BAD_CONFIG],
            notify="never",
            if_running="allow",
            labels=labels,
        )
        await self._started(started.id)

    async def _started(self, process: str) -> None:
        """Raises HoldfastError with what it printed, if it ends before it has the session."""
        async with asyncio.timeout(_START_TIMEOUT):
            while not self.is_running:
                found = await self._client.inspect(process)
                if found.status == "ended" and not self.is_running:
                    if found.exit_code == 0:
                        return  # it was there, and is done
                    page = await self._client.logs(process, lines=5)
                    said = page.data.decode(errors="replace").strip().splitlines()
                    what = said[-1][:300] if said else f"exit {found.exit_code}"
                    raise HoldfastError(f"the agent did not start: {what}", next=f"holdfast logs {process}")
                await asyncio.sleep(_POLL)

    async def follow(self, after: int = 0, wake: float | None = None) -> AsyncIterator[LogEntry | None]:
        """The entries behind `after`, then those that come, without end; None every `wake` seconds without one."""
        offset, rest, idle_since = 0, b"", time.monotonic()
        while True:
            data = self._read(offset)
            offset += len(data)
            whole, _, rest = (rest + data).rpartition(b"\n")
            for line in whole.split(b"\n") if whole else ():
                entry = session_log.parse_line(line)
                if entry is not None and entry.id > after:
                    yield entry
                    idle_since = time.monotonic()
            if wake is not None and time.monotonic() - idle_since >= wake:
                yield None
                idle_since = time.monotonic()
            if not data:
                if os.path.exists(self.path) and os.path.getsize(self.path) < offset:
                    offset -= len(rest)  # a writer removed an incomplete line
                    rest = b""
                await asyncio.sleep(_POLL)

    def _read(self, offset: int) -> bytes:
        try:
            with open(self.path, "rb") as file:
                file.seek(offset)
                return file.read()
        except FileNotFoundError:
            return b""

    async def shown(self) -> AsyncIterator[dict[str, Any]]:
        """The events of the agent as they happen: what is streamed (`tui.**`), turns (`agent.*`) and tools."""
        async with self._client.events("tui.** agent.* tool.*", follow=True) as events:
            async for event in events:
                if event.get("session") == self.session:
                    yield event


def new_input() -> str:
    """An id for a message of the user."""
    return f"in_{secrets.token_hex(6)}"


def agent_of(process: Any) -> str | None:
    """The session of the agent that a process object is; None for other processes."""
    labels = process.labels or {}
    return labels.get(LABEL) if process.session == AGENTS else None
