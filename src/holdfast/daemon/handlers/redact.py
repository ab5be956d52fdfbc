"""redact: texts as a model may see them."""

from __future__ import annotations

from holdfast.daemon import values
from holdfast.daemon.room import Call, Message, Room
from holdfast.errors import BadValue

_MOST = 10_000


async def handle(room: Room, call: Call, ask: Message) -> Message:
    texts = values.texts(ask, "texts", _MOST)
    if texts is None:
        raise BadValue("the texts are missing")
    return {"texts": await room.secrecy.mask(texts)}
