"""Ends of processes that their owner session learns from a reply: they need no further notification."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.daemon.room import Call, Room
from holdfast.model.ids import ProcessId


def asker(call: Call) -> str:
    """The session that the caller speaks for."""
    return call.session or "default"


async def consume(room: Room, call: Call, ids: Iterable[ProcessId]) -> None:
    """Of the caller's processes that have ended, the notification of the end is delivered with the reply."""
    processes = [process for process_id in ids if (process := room.registry.get(process_id)) is not None]
    ended = [(process.id, process.run) for process in processes if process.has_ended]
    # Noted before they are held: whatever happens then, they are released again.
    call.consumed += room.inbox.completion_ids(ended, asker(call))
    await room.inbox.hold(call.consumed, call)
