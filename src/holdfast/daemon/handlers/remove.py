"""remove: forget ended processes."""

from __future__ import annotations

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.ending import forget
from holdfast.errors import BadValue, NotNow
from holdfast.ops.processes import Remove


async def handle(context: DaemonContext, call: Call, ask: Remove) -> Message:
    """All or none as far as it can be known beforehand: a running process among them refuses the whole."""
    if not ask.processes:
        raise BadValue("remove which process?", next="holdfast ps -a")
    processes = {process.id: process for process in map(context.registry.identify, ask.processes)}
    for process in processes.values():
        if not process.has_ended:
            raise NotNow(f"{process.id} still runs", next=f"holdfast kill {process.id}")
    for process_id in processes:
        await forget(context, process_id)
    return {"removed": list(processes)}
