"""Agents of sessions: their names on the event bus and in the list of processes, and what each does by its log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.records import Struct

#: The session that owns the agents themselves.
AGENTS = "agents"
#: The label that names the session of an agent.
LABEL = "holdfast.agent"
#: What front ends publish for the agent of a session.
INPUT_TOPIC = "agent.input"
INTERRUPT_TOPIC = "session.interrupt"
#: The exit code of an agent whose configuration is wrong: EX_CONFIG of sysexits.h.
BAD_CONFIG = 78

_LONGEST_SESSION = 256
_QUIET = frozenset({"session", "settings"})


def is_session(text: str) -> bool:
    """Whether it can be the name of a session."""
    return 0 < len(text) <= _LONGEST_SESSION and text.isprintable()


class AgentState(Struct, frozen=True):
    """`phase` is working, idle, or none where the session has no conversation. `why` says it in a few words."""

    phase: str = "none"
    why: str = ""


def next_state(state: AgentState, kind: str, content: Mapping[str, Any]) -> AgentState:
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


def state_of_log(entries: Iterable[Any]) -> AgentState:
    """After these entries, each with `kind` and `content`."""
    state = AgentState()
    for entry in entries:
        state = next_state(state, entry.kind, entry.content)
    return state
