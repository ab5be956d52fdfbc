"""inspect: one process."""

from __future__ import annotations

import asyncio

from holdfast.daemon.core import process_object
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.errors import Unreachable
from holdfast.model.process import HeldProcess
from holdfast.ops.processes import Inspect
from holdfast.places.keeper_link import Refused

_BUDGET = 1.0
#: How old what it uses may be, in seconds.
_USED = 0.1


async def handle(context: DaemonContext, call: Call, ask: Inspect) -> Message:
    process = context.registry.identify(ask.process)
    (shown,) = await context.show_fresh([process], used=_USED)
    token = process_object.state_token(shown)
    if ask.seen == token:
        return {"unchanged": True}
    tree = await _tree(context, process) if ask.tree else None
    return {"process": shown, "seen": token, "tree": tree}


async def _tree(context: DaemonContext, process: HeldProcess) -> list[Message] | None:
    """Everyone who belongs to it; None when the keeper does not answer at once."""
    if not process.is_running:
        return []
    try:
        async with asyncio.timeout(_BUDGET):
            seen = await context.place.members(process.id)
    except (Refused, Unreachable, TimeoutError):
        return None
    shown = ("pid", "ppid", "name", "cpu_seconds", "rss_bytes")
    return [{key: getattr(member, key) for key in shown} for member in seen]
