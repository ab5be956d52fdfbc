"""Ends that the owner session gets as the answer to a request: their notices are consumed."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.daemon.room import Call, Room
from holdfast.model.ids import ProcessId


def asker(call: Call) -> str:
    """The session that the caller speaks for."""
    return call.session or "default"


async def consumed_by_answer(room: Room, call: Call) -> None:
    """The client has the answer: the notices of the ends in it are acknowledged."""
    await room.inbox.settle(call.consumed, "wait", room.sessions.resolve(asker(call)))


async def consume(room: Room, call: Call, ids: Iterable[ProcessId]) -> None:
    """Of those that are the caller's and have ended, the completion is consumed once the client has the answer."""
    processes = [process for process_id in ids if (process := room.registry.get(process_id)) is not None]
    ended = [(process.id, process.run) for process in processes if process.has_ended]
    call.consumed += room.inbox.completion_ids(ended, asker(call))  # first: then they are given back in any case
    await room.inbox.hold(call.consumed, call)
