"""What became of a call that was under way when its agent died. It is answered so, and never run again."""

from __future__ import annotations

import asyncio
import time

from holdfast.agent.conversation import OpenCall
from holdfast.agent.toolbox import ToolOutcome
from holdfast.client.aio import AsyncClient
from holdfast.errors import NotFound
from holdfast.tools.answers import about, answer

#: How long a start that was under way when the agent died may take to appear.
_APPEARS_WITHIN = 1.0


async def fate(client: AsyncClient, open_call: OpenCall) -> ToolOutcome:
    """The answer to the call. Its process id was chosen and logged before the start. Raises HoldfastError."""
    if not open_call.is_started:
        why = "the agent was restarted before this call was run: it was not run"
        return ToolOutcome.of(answer("interrupted", "not_run", "call again if it is still needed", note=why))
    if open_call.process is None:
        why = "the agent was restarted while this call was under way: whether it took effect is unknown"
        return ToolOutcome.of(answer("interrupted", "unknown", "check before you repeat it", note=why))
    until = time.monotonic() + _APPEARS_WITHIN
    while True:
        try:
            process = await client.inspect(open_call.process)
            break
        except NotFound:
            if time.monotonic() < until:
                await asyncio.sleep(0.1)
                continue
            why = f"the agent was restarted: no process {open_call.process} of this call is known"
            next = "it was not run, as far as is known: process(action='list') before you repeat it"
            return ToolOutcome.of(answer("interrupted", "not_started", next, note=why))
    what = f"ended ({process.reason})" if process.status == "ended" else "is still running"
    if process.exit_code is not None:
        what = f"ended with exit code {process.exit_code}"
    why = f"interrupted: the agent was restarted; its process {process.id} {what}"
    next = f"do not run it again; process(action='log', session_id='{process.id}') shows its output"
    return ToolOutcome.of(about(process, next, status="interrupted", reason="agent_restarted", note=why))
