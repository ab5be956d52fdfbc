"""Ends that their owner is told as the answer to a question: nobody tells them again."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.daemon.room import Call, Room
from holdfast.model.ids import ProcessId


def asker(call: Call) -> str:
    """The session that the caller speaks for."""
    return call.session or "default"


async def was_told(room: Room, call: Call) -> None:
    """The client has the answer, and with it the news that is in it."""
    await room.inbox.settle(call.consumed, "wait", room.sessions.resolve(asker(call)))


async def consume(room: Room, call: Call, ids: Iterable[ProcessId]) -> None:
    """Of those that are the caller's and have ended, the completion counts as told once the client has the answer."""
    processes = [process for process_id in ids if (process := room.registry.get(process_id)) is not None]
    ended = [(process.id, process.run) for process in processes if process.has_ended]
    call.consumed += room.inbox.completion_ids(ended, asker(call))  # first: then they are given back in any case
    await room.inbox.hold(call.consumed, call)
