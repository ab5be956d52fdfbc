"""What needs the user: requests for approval, questions, stalls, failures. No I/O."""

from __future__ import annotations

import time
from collections.abc import Container, Sequence
from typing import NamedTuple

from holdfast.client.process import Process
from holdfast.client.results.approval import Approval
from holdfast.tui import paint
from holdfast.tui.states import NEEDS_USER, is_recent_failure, note_of, state_of

#: So many are in view.
MOST_LINES = 3


class UserNeed(NamedTuple):
    """Something that needs the user: an approval or a process, in one line, and what to press."""

    kind: str
    id: str
    icon: str
    colour: str
    text: str
    action: str


def needs(
    approvals: Sequence[Approval], processes: Sequence[Process], seen: set[str], agents: Container[str] = ()
) -> list[UserNeed]:
    """Requests for approval first, then questions, then stalls; failures that were not looked at yet come last.

    Failures in a session with a live agent (`agents`) are not the user's: the agent is notified of them.
    """
    now = time.time()
    found = [
        UserNeed("approval", one.id, "!", "warn", f"{one.command} ({one.session})  {one.why}", "a answer")
        for one in sorted(approvals, key=lambda one: one.at)
    ]
    asking: list[UserNeed] = []
    stuck: list[UserNeed] = []
    failed: list[UserNeed] = []
    for process in processes:
        agent_of = (process.labels or {}).get("holdfast.agent")
        name = f"agent of {agent_of}" if agent_of else f"{process.name or process.command} ({process.session})"
        state = state_of(process)
        if process.status != "ended" and state.key in NEEDS_USER:
            is_question = state.key == "needs input"
            text = f"{name}  {note_of(process, now) if is_question else state.word + ' ' + note_of(process, now)}"
            need = UserNeed("process", process.id, state.icon, "warn", text, "a answer" if is_question else "a open")
            (asking if is_question else stuck).append(need)
        elif process.id not in seen and process.session not in agents and is_recent_failure(process, now):
            failed.append(UserNeed("process", process.id, state.icon, "bad", f"{name}  {state.word}", "a open"))
    return [*found, *asking, *stuck, *failed]


def need_parts(needs: Sequence[UserNeed], at: int, width: int, is_writing: bool = False) -> list[paint.Part]:
    """One line. `is_writing`: the user writes to an agent, and plain keys are letters."""
    need, more = needs[at], len(needs) - MOST_LINES
    action = "" if at else f"alt-{need.action}" if is_writing else need.action
    if at == MOST_LINES - 1 and more > 0:
        action = f"+{more} more"
    return [
        (f" {need.icon} ", need.colour, True),
        (paint.fit(need.text, width - len(action) - 5), "text", False),
        (f" {action} ", "accent", False),
    ]
