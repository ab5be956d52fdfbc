"""Ends that their owner is told as the answer to a question: nobody tells them again."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.daemon.room import Call, Room
from holdfast.model.ids import ProcessId


def is_owner(room: Room, call: Call, process_id: ProcessId) -> bool:
    """Whether the caller speaks for the session that owns it."""
    process = room.registry.get(process_id)
    return process is not None and process.meta.session == (call.session or "default")


async def consume(room: Room, call: Call, owned: Iterable[ProcessId]) -> None:
    """Of those that have ended, the completion counts as told once the client has the answer."""
    processes = [process for process_id in owned if (process := room.registry.get(process_id)) is not None]
    ended = [(process.id, process.run) for process in processes if process.has_ended]
    if ids := room.inbox.completion_ids(ended):
        call.consumed += await room.inbox.hold(ids, call)
