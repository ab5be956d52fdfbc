"""Ending a process on somebody's behalf: the one way there is."""

from __future__ import annotations

import asyncio
import signal

from holdfast.daemon.core import reports
from holdfast.daemon.core.context import Message, Room
from holdfast.daemon.core.keeper_errors import to_error
from holdfast.daemon.notices.objects import keep_output
from holdfast.daemon.workers import sink_messages
from holdfast.model.ids import ProcessId
from holdfast.model.lifecycle import StopReason, end_signal, exit_code, reason
from holdfast.model.process import Process
from holdfast.places.keeper_link import Refused


async def end(room: Room, process: Process, by: str | None, why: StopReason, grace: float) -> Message:
    """End the whole tree, politely and after the grace period by force; the result when it is gone, or will not go.

    Of a process that has ended, what it left behind is ended. One that waits for its next run will have none, and
    neither will one that ends by itself at this very moment.
    """
    process = room.registry.get(process.id) or process
    stop = {
        "id": process.id,
        "by": reports.asker(by),
        "reason": why,
        "signal": int(signal.SIGTERM),
        "grace": grace,
        "late": why != "restart" and not process.has_ended,
    }
    if grace > 0 and room.stop_commands.concerns(process):
        await _tell(room, process, by, why, stop)
    room.supervisor.stop_asked(process.id, by, why)
    try:
        answer = await room.keeper.request("stop", **stop)
    except Refused as refused:
        if refused.code != "not_found":
            raise to_error(refused) from refused
        await room.supervisor.lose(process.id)
        return result(room, process.id)
    if answer["report"] is not None:
        await room.supervisor.take(answer["report"])
    if answer["forced"]:
        room.supervisor.force_used(process.id)
    return result(room, process.id, answer["forced"], answer["survivors"])


async def _tell(room: Room, process: Process, by: str | None, why: StopReason, stop: Message) -> None:
    """Run its stop command. The stop is recorded before, and goes on without us if we do not come back."""
    grace = stop["grace"]
    recorded = room.keeper.begin("stop", **stop, quiet=grace)
    recorded.add_done_callback(lambda answer: answer.cancelled() or answer.exception())
    command = room.stop_commands.begin(process, grace)
    room.supervisor.stop_asked(process.id, by, why)
    await asyncio.wait({command}, timeout=grace)
    recorded.cancel()


def result(
    room: Room,
    process_id: ProcessId,
    forced: bool | None = None,
    survivors: list[int] | None = None,
    sent: int | None = None,
) -> Message:
    """How a process stands after something was done to it."""
    process = room.registry.get(process_id)
    state = process.state if process is not None else None
    is_alive = bool(survivors) or (process is not None and process.is_running)
    return {
        "id": process_id,
        "status": "running" if is_alive else "ended",
        "reason": reason(state) if state is not None else None,
        "forced": forced,
        "survivors": survivors or [],
        "exit_code": exit_code(state) if state is not None else None,
        "signal": end_signal(state) if state is not None else None,
        "sent": sent,
    }


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
