"""What every call works with."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.model.foreground import is_foreground
from holdfast.model.units import duration_text
from holdfast.tools import door
from holdfast.tools.envelope import GO_ON, Answer, answer

if TYPE_CHECKING:
    from holdfast.client.aio import AsyncClient
    from holdfast.client.process import Process
    from holdfast.tools.interrupts import Interrupts
    from holdfast.tools.limits import Limits
    from holdfast.tools.memory import Memory
    from holdfast.tools.places import Places

_COMMAND = 100


class Context(NamedTuple):
    client: AsyncClient
    session: str
    limits: Limits
    memory: Memory
    interrupts: Interrupts
    places: Places | None
    """None where the daemon's files are out of reach."""
    options: dict[str, Any]
    """For every start: origin, asker, approval_wait, task …"""

    async def find(self, text: str) -> Process:
        return await door.find(self.client, text)

    def approving(self) -> dict[str, Any]:
        """How a person is asked, where what is done to a process needs approval."""
        return {key: self.options[key] for key in ("asker", "approval_wait") if self.options.get(key) is not None}


def uptime(process: Process) -> float:
    if process.started_at is None:
        return 0.0
    return max(0.0, round((process.ended_at or time.time()) - process.started_at, 1))


def brief(process: Process) -> dict[str, object]:
    """A line of a list."""
    command = " ".join(process.command.split())
    fields = {
        "session_id": process.id,
        "name": process.name,
        "command": command if len(command) <= _COMMAND else f"{command[:_COMMAND]}…",
        "status": process.status,
        "reason": process.reason,
        "exit_code": process.exit_code,
        "uptime": duration_text(uptime(process)),
    }
    return {key: value for key, value in fields.items() if value is not None}


def about(
    process: Process, next: str = GO_ON, *, status: str | None = None, reason: str | None = None, **more: object
) -> Answer:
    """How a process stands."""
    need = process.needs_input
    more = more if need is None else {**more, "needs_input": {key: need[key] for key in ("prompt", "secret")}}
    return answer(
        status or process.status,
        reason or process.reason or "running",
        next,
        session_id=process.id,
        pid=process.pid,
        exit_code=process.exit_code,
        signal=process.signal,
        uptime=uptime(process),
        **more,
    )


def asking(process: Process) -> str | None:
    """What to do about a process that waits for an answer; None where it does not."""
    if process.needs_input is None:
        return None
    person = f"holdfast attach {process.id}"
    if process.needs_input["secret"]:
        return f"it waits for a secret: ask the user to run `{person}` or `holdfast send {process.id} --secret`"
    return f"it waits for an answer: process(action='submit', data=…), or the user: `{person}`"


def was_background(process: Process) -> bool:
    """Whether it is, or became, a background process: not one whose end the foreground call told."""
    return process.status != "ended" or not is_foreground(process.labels, uptime(process))


async def still_running(context: Context, but: str | None = None) -> list[dict[str, object]]:
    """What runs for the session, in short."""
    found = await context.client.ps(session=context.session, used=False)
    rows = [{"session_id": one.id, "command": brief(one)["command"]} for one in found if one.id != but]
    return rows[: context.limits.listed]


def clamped(asked: float | None, usual: float, most: float, least: float, notes: list[str]) -> float:
    """How long to wait; what is not as it was asked for is noted."""
    if asked is None:
        return usual
    granted = min(max(asked, least), most)
    if granted != asked:
        notes.append(f"timeout {asked:g} s was clamped to {granted:g} s")
    return granted
