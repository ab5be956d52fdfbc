"""attached: somebody's own terminal shows what a process writes, for as long as this request lasts."""

from __future__ import annotations

import time

from holdfast.daemon.core.context import Call, Message, Room
from holdfast.errors import NoTerminal
from holdfast.model.events import Event
from holdfast.model.process import Process
from holdfast.ops.processes import Attached


async def handle(room: Room, call: Call, ask: Attached) -> Message:
    """Until the process ends. Given up, or with its connection, it counts as detached."""
    process = room.registry.identify(ask.process)
    if not process.meta.pty:
        raise NoTerminal(f"{process.id} has no terminal")
    async with room.screens.attach(process, ask.from_):
        _tell(room, process, "attached", call.owner)
        try:
            await room.registry.wait_ended(process.id)
        finally:
            _tell(room, process, "detached", call.owner)
    return {}


def _tell(room: Room, process: Process, what: str, by: str) -> None:
    """That somebody is at its terminal, and not what they type."""
    now = room.registry.get(process.id)
    if now is not None and now.is_running:
        fields = {"id": now.id, "name": now.meta.name, "session": now.meta.session, "task": now.meta.task, "by": by}
        room.store.record_soon([Event(f"process.{what}", time.time(), fields)])
