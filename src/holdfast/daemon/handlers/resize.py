"""resize: give a terminal another size."""

from __future__ import annotations

from dataclasses import replace

from holdfast.daemon.core.context import Call, Message, Room
from holdfast.daemon.core.keeper_errors import to_error
from holdfast.errors import NoTerminal
from holdfast.model.ids import ProcessId
from holdfast.ops.processes import Resize
from holdfast.places.keeper_link import Refused


async def handle(room: Room, call: Call, ask: Resize) -> Message:
    process = room.registry.identify(ask.process)
    cols, rows = ask.cols, ask.rows
    if not process.meta.pty:
        raise NoTerminal(f"{process.id} has no terminal")
    async with room.screens.resizing(process, cols, rows):
        try:
            if not process.is_waiting:
                await room.keeper.request("resize", id=process.id, cols=cols, rows=rows)
        except Refused as refused:
            raise to_error(refused) from refused
        _remember(room, process.id, cols, rows)
    return {}


def _remember(room: Room, process_id: ProcessId, cols: int, rows: int) -> None:
    process = room.registry.get(process_id)
    if process is not None:
        room.supervisor.show(replace(process, cols=cols, rows=rows))
