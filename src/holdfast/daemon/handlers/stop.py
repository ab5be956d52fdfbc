"""stop: end the daemon on purpose."""

from __future__ import annotations

import asyncio

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.ending import end
from holdfast.model.process_rules import end_with_daemon
from holdfast.ops.daemon import Stop


async def handle(context: DaemonContext, call: Call, ask: Stop) -> Message:
    """Answers when everything that ends with the daemon has ended; the daemon itself goes after that."""
    answer = await end_of_daemon(context)
    context.stop_asked.set()
    return answer


async def end_of_daemon(context: DaemonContext) -> Message:
    ending, left = end_with_daemon(context.registry.running())
    await asyncio.gather(*(end(context, process, None, "daemon_stop", context.settings.grace) for process in ending))
    return {"ended": [process.id for process in ending], "left": [process.id for process in left]}
