"""queues, set_queue, remove_queue: which processes wait, and how many run at once."""

from __future__ import annotations

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.ops.queues import Queues, RemoveQueue, SetQueue


async def handle(context: DaemonContext, call: Call, ask: Queues) -> Message:
    """Every queue that has processes or was changed."""
    return {"queues": context.queues.shown(call)}


async def change(context: DaemonContext, call: Call, ask: SetQueue) -> Message:
    """Replies when the change is on disk. Starts that it allows follow at once."""
    await context.queues.change(ask.queue, ask.limit, ask.paused)
    return {"queue": context.queues.shown_one(ask.queue, call)}


async def remove(context: DaemonContext, call: Call, ask: RemoveQueue) -> Message:
    """Replies when it is gone from disk. Raises NotNow while it has processes."""
    return {"removed": await context.queues.remove(ask.queue)}
