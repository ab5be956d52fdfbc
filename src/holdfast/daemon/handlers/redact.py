"""redact: texts as a model may see them."""

from __future__ import annotations

from holdfast.daemon.core.context import Call, Message, Room
from holdfast.errors import BadValue
from holdfast.ops.daemon import Redact


async def handle(room: Room, call: Call, ask: Redact) -> Message:
    if ask.texts is None:
        raise BadValue("the texts are missing")
    return {"texts": await room.secrecy.mask(ask.texts)}
