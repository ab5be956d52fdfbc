"""attached: somebody's own terminal shows what a process writes, for as long as this request lasts."""

from __future__ import annotations

import time

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.errors import NoTerminal
from holdfast.model.events import Event
from holdfast.model.process import HeldProcess
from holdfast.ops.processes import Attached


async def handle(context: DaemonContext, call: Call, ask: Attached) -> Message:
    """Until the process ends. Given up, or with its connection, it counts as detached."""
    process = context.registry.identify(ask.process)
    if not process.meta.pty:
        raise NoTerminal(f"{process.id} has no terminal")
    async with context.screens.attach(process, ask.from_):
        _tell(context, process, "attached", call.owner)
        try:
            await context.registry.wait_ended(process.id)
        finally:
            _tell(context, process, "detached", call.owner)
    return {}


def _tell(context: DaemonContext, process: HeldProcess, what: str, by: str) -> None:
    """That somebody is at its terminal, and not what they type."""
    now = context.registry.get(process.id)
    if now is not None and now.is_running:
        fields = {"id": now.id, "name": now.meta.name, "session": now.meta.session, "task": now.meta.task, "by": by}
        context.store.record_soon([Event(f"process.{what}", time.time(), fields)])
