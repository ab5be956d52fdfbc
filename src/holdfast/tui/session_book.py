"""The sessions: what the agent of each does, from its log when the UI is opened, then from events."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from holdfast.agent import session_log
from holdfast.agent.config import ACP_PRESETS, read_config
from holdfast.agent.session_log import LogEntry
from holdfast.errors import BadValue

#: The end of a log that tells what its agent does.
_TAIL = 64 << 10
_MOST_LOGS = 200
_QUIET = frozenset({"session", "settings"})


class AgentState(NamedTuple):
    """`phase` is working, idle, or none where the session has no conversation. `why` says it in a few words."""

    phase: str = "none"
    why: str = ""


def next_state(state: AgentState, kind: str, content: dict[str, Any]) -> AgentState:
    """After an entry of the log. Events name the kind alone."""
    if kind in _QUIET:
        return state if state.phase != "none" else AgentState("idle")
    if kind == "error":
        return AgentState("idle", str(content.get("message") or "error"))
    if kind == "end":
        reason = str(content.get("reason") or "")
        if reason == "error" and state.phase == "idle":
            return state  # the error itself says more
        return AgentState("idle", "" if reason == "done" else reason)
    if kind == "tool_start":
        return AgentState("working", str(content.get("name") or state.why or "runs a tool"))
    return AgentState("working", "" if kind != "notice" else "was notified")


def state_of_log(entries: list[LogEntry]) -> AgentState:
    state = AgentState()
    for entry in entries:
        state = next_state(state, entry.kind, entry.content)
    return state


class LogTail:
    """Reads what was appended to a session log since the last time."""

    def __init__(self, path: str, offset: int = 0) -> None:
        self._path = path
        self._offset = offset
        self._last = 0

    @property
    def has_more(self) -> bool:
        try:
            return os.path.getsize(self._path) > self._offset
        except OSError:
            return False

    def read(self) -> list[LogEntry]:
        """The new entries, each once. An incomplete line is read again."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return []
        end = data.rfind(b"\n") + 1
        self._offset += end
        found = []
        for line in data[:end].split(b"\n"):
            entry = session_log.parse_line(line) if line else None
            if entry is not None and entry.id > self._last:
                self._last = entry.id
                found.append(entry)
        return found


class SessionInfo:
    """One session."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = AgentState()
        self.changed_at = 0.0
        #: The program that is its agent, where it is a new session.
        self.acp: str | None = None

    def take(self, event: dict[str, Any]) -> None:
        """An event of its agent."""
        topic = str(event.get("type"))
        if topic == "agent.step":
            self.state = next_state(self.state, str(event.get("kind")), {})
        elif topic == "agent.start":
            self.state = AgentState("working")
        elif topic == "agent.end":
            self.state = next_state(self.state, "end", event)
        elif topic == "tui.tool.start":
            self.state = AgentState("working", str(event.get("name") or ""))
        elif topic == "tui.message.start":
            self.state = AgentState("working", "asks the model")
        elif topic == "tui.error":
            self.state = AgentState("working" if event.get("retry_in") else "idle", str(event.get("message") or ""))
        else:
            return
        self.changed_at = float(event.get("ts") or 0.0)


class SessionBook:
    """Sessions by name, in the order in which they were first seen."""

    def __init__(self, home: str | None) -> None:
        """`home`: None where the daemon is on another machine, and its logs cannot be read here."""
        self._home = home
        self.sessions: dict[str, SessionInfo] = {}

    def load(self) -> None:
        """Read the end of each log."""
        if self._home is None:
            return
        logged = session_log.sessions(self._home)[:_MOST_LOGS]
        for one in sorted(logged, key=lambda one: one.session):
            info = self.get(one.session)
            info.changed_at = one.changed_at
            size = os.path.getsize(one.path) if os.path.exists(one.path) else 0
            info.state = state_of_log(LogTail(one.path, max(0, size - _TAIL)).read())
            if info.state.phase == "none":
                info.state = AgentState("idle")

    def get(self, name: str) -> SessionInfo:
        if name not in self.sessions:
            self.sessions[name] = SessionInfo(name)
        return self.sessions[name]

    def programs(self) -> list[str]:
        """The programs that can be the agent of a new session; none where the daemon is on another machine."""
        if self._home is None:
            return []
        try:
            own = list(read_config(self._home).acp)
        except BadValue:  # a message to an agent says what is wrong
            own = []
        return [*own, *(name for name in ACP_PRESETS if name not in own)]

    def path_of(self, name: str) -> str | None:
        return session_log.path_of(self._home, name) if self._home is not None else None

    def take(self, event: dict[str, Any]) -> str | None:
        """An event; the session whose agent it is about."""
        session, topic = event.get("session"), str(event.get("type"))
        if not isinstance(session, str) or not topic.startswith(("agent.", "tui.", "tool.")):
            return None
        if topic.startswith(("agent.", "tui.")):
            self.get(session).take(event)
        return session
