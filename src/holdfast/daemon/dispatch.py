"""From an operation to its handler: what every request passes, whichever door it came in by."""

from __future__ import annotations

from holdfast.daemon import operators, strict
from holdfast.daemon.handlers import HANDLERS
from holdfast.daemon.room import Call, Message, Room
from holdfast.errors import Unsupported


async def answer(room: Room, call: Call, op: str, ask: Message) -> Message:
    """Raises Unsupported for what there is not, and whatever the handler raises."""
    handler = HANDLERS.get(op)
    if handler is None:
        raise Unsupported(f"unknown operation {op[:60]!r}")
    if call.is_strict:
        return await handler(room, call, strict.narrowed(room, call, op, ask))
    noted = operators.note(room, call, op, ask)
    try:
        return await handler(room, call, ask)
    finally:
        if noted is not None:
            await noted
