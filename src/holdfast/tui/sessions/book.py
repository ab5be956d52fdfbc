"""The sessions: what the agent of each does, from its log when the UI is opened, then from events."""

from __future__ import annotations

from typing import Any

from holdfast import session_log
from holdfast.errors import BadValue
from holdfast.model.agents import AgentState, next_state, state_of_log
from holdfast.session_log import LogTail

#: The end of a log that says what its agent does; the second where an entry is longer.
_TAILS = (8 << 10, 256 << 10)
_MOST_LOGS = 200


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
        elif topic == "tui.reasoning.delta":
            self.state = AgentState("working", "thinks")
        elif topic == "tui.message.delta":
            self.state = AgentState("working", "writes")
        elif topic == "tui.tool.generating":
            self.state = AgentState("working", f"writes a call of {event.get('name')}")
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
            size = session_log.size_of(one.path)
            for tail in _TAILS:
                info.state = state_of_log(LogTail(one.path, max(0, size - tail)).read())
                if info.state.phase != "none" or size <= tail:
                    break
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
        from holdfast.agent.config import ACP_PRESETS, read_config  # not needed for the first frame

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
