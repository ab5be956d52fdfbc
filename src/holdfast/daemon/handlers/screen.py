"""screen: what a person would see on the terminal of a process now."""

from __future__ import annotations

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.errors import NoTerminal
from holdfast.ops.processes import ShowScreen


async def handle(context: DaemonContext, call: Call, ask: ShowScreen) -> Message:
    """The picture, how far the output was looked at for it, and whether some of it was left out."""
    process = context.registry.identify(ask.process)
    if not process.meta.pty:
        raise NoTerminal(f"{process.id} has no terminal", next=f"holdfast logs {process.id}")
    shown = await context.screens.show(process, ask.ansi)
    now = context.registry.get(process.id) or process
    return {
        "screen": {"id": process.id, **shown["picture"], "at": shown["at"], "gap": shown["gap"]},
        "process": context.show(now),
    }
