"""A session of an agent for tests: a real daemon, the real service, a front end that is closed after each use."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from holdfast import session_log
from holdfast.agent.front import AgentFront
from holdfast.client.aio import aconnect
from holdfast.session_log import LogEntry
from tests.agent.endpoint import Endpoint
from tests.support import eventually

T = TypeVar("T")


def configure(home: Path, endpoint: Endpoint, **more: Any) -> None:
    """Write agent/config.toml."""
    values = {"base_url": endpoint.url, "model": "m", "retry_delay": 0.05, **more}
    tables = {name: value for name, value in values.items() if isinstance(value, dict)}
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items() if name not in tables]
    for name, table in tables.items():
        for inner, value in table.items():
            if isinstance(value, dict):
                lines += [f"[{name}.{inner}]", *(f"{key} = {json.dumps(one)}" for key, one in value.items())]
            else:
                lines += [f"[{name}]", f"{inner} = {json.dumps(value)}"]
    (home / "agent").mkdir(parents=True, exist_ok=True, mode=0o700)
    home.chmod(0o700)
    (home / "agent/config.toml").write_text("\n".join(lines) + "\n")


class Conversation:
    """The session with this name, in the instance of the test."""

    def __init__(self, home: Path, session: str = "A", acp: str | None = None) -> None:
        self.home = home
        self.session = session
        self._acp = acp
        self.path = session_log.path_of(str(home), session)

    def _with_front(self, work: Callable[[AgentFront], Coroutine[Any, Any, T]]) -> T:
        async def do() -> T:
            async with aconnect(self.session) as client:
                return await work(AgentFront(client, self.session, self._acp))

        return asyncio.run(do())

    def send(self, text: str) -> str:
        return self._with_front(lambda front: front.send(text))

    def set(self, **settings: str) -> None:
        self._with_front(lambda front: front.set(**settings))

    def stop(self) -> None:
        self._with_front(lambda front: front.stop())
        eventually(lambda: not session_log.is_held(str(self.home), self.session))

    def start(self) -> None:
        """As a front end that is opened does: an agent in its pause after a crash is run now."""
        self._with_front(lambda front: front.start())

    def interrupt(self) -> None:
        self._with_front(lambda front: front.interrupt())

    def compact(self) -> None:
        self._with_front(lambda front: front.compact())

    @property
    def entries(self) -> list[LogEntry]:
        return session_log.read(self.path) if os.path.exists(self.path) else []

    def of(self, kind: str) -> list[LogEntry]:
        return [entry for entry in self.entries if entry.kind == kind]

    def results(self) -> list[dict[str, Any]]:
        """The answers of tools, as objects."""
        return [json.loads(entry.content["text"]) for entry in self.of("tool_result")]

    def ended(self, turns: int, timeout: float = 60.0) -> list[LogEntry]:
        """Waits until this number of turns has ended; all entries."""
        eventually(lambda: len(self.of("end")) >= turns, timeout=timeout)
        return self.entries

    def say(self, text: str, timeout: float = 60.0) -> str:
        """Send a message and wait for the end of its turn: the last words of the model."""
        before = len(self.of("end"))
        self.send(text)
        entries = self.ended(before + 1, timeout)
        return next((str(one.content["text"]) for one in reversed(entries) if one.kind == "assistant"), "")

    def pid(self) -> int | None:
        """Of the agent."""
        mark = b"holdfast.agent\0" + self.session.encode() + b"\0"
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    command = Path(f"/proc/{name}/cmdline").read_bytes()
                    environ = Path(f"/proc/{name}/environ").read_bytes()
                except OSError:
                    continue
                if mark in command and os.fsencode(self.home) in environ:
                    return int(name)
        return None

    def kill(self) -> int:
        """As a crash would; the pid that it had."""
        pid = eventually(self.pid)
        os.kill(pid, signal.SIGKILL)
        return pid
