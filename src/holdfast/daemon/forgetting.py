"""Forgetting an ended process: its bundle first, then its row, so that a crash in between brings nothing back."""

from __future__ import annotations

from holdfast.daemon.notifications import keep_output
from holdfast.daemon.refusals import to_error
from holdfast.daemon.room import Room
from holdfast.daemon.workers import sink_messages
from holdfast.model.ids import ProcessId
from holdfast.places.keeper_link import Refused


async def forget(room: Room, process_id: ProcessId) -> None:
    """Raises NotNow while something still writes to its output."""
    async with room.supervisor.turn(process_id):
        await keep_output(room, process_id)
        await sink_messages.keep_output(room, process_id)
        try:
            await room.keeper.request("forget", id=process_id)
        except Refused as refused:
            raise to_error(refused) from refused
        await room.store.remove([process_id])
        room.registry.drop(process_id)
        room.place.forget(process_id)
        room.inputs.forget(process_id)
        room.stop_commands.forget(process_id)
        room.readers_of_input.forget(process_id)
        await room.screens.forget(process_id)
