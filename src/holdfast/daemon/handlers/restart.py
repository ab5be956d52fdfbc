"""restart: run a process again, with the same spec and the same id."""

from __future__ import annotations

from holdfast.daemon.approvals import commands
from holdfast.daemon.core import restarting
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.ops.processes import Restart

_LONGEST_GRACE = 86400.0


async def handle(context: DaemonContext, call: Call, ask: Restart) -> Message:
    """Answers when it runs again. With `run`, the same question again is the same restart."""
    process = context.registry.identify(ask.process)
    grace = context.settings.grace if ask.grace is None else min(ask.grace, _LONGEST_GRACE)
    async with commands.restarting(context, call, ask, process, ask.run):
        process = await restarting.restart(context, process, call.session, ask.run, grace)
    return {"process": context.show(process)}
