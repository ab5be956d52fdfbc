"""inbox: what a session is yet to be told. ack: it was told."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

from holdfast.daemon import notifications, pushing, values
from holdfast.daemon.room import Call, Message, Room
from holdfast.errors import BadValue
from holdfast.model.notices import Notice
from holdfast.wire import light_json
from holdfast_keeper import points

_MOST = 1000
_MOST_IDS = 100_000


async def handle(room: Room, call: Call, ask: Message) -> Message:
    """What is pending, after waiting for something where that is wanted. Looking acknowledges nothing."""
    session = room.session(ask) or call.session or "default"
    limit = values.integer(ask, "limit", 1, _MOST) or _MOST
    taker = call.taker if values.flag(ask, "take") else None
    wait = values.seconds(ask, "wait") or 0.0
    most = room.settings.wait_limit
    granted = min(wait, most) if most > 0 else wait
    began = time.monotonic()
    found = (await _pending(room, session, taker, granted))[:limit]
    if taker is not None:
        room.inbox.take(found, taker)
    shown = await notifications.handed_out(room, found, session, taker, "inbox", values.flag(ask, "raw"))
    if shown:
        points.reach("notice-shown")
    clamped = granted if granted < wait else None
    return {"notifications": shown, "waited": time.monotonic() - began, "clamped_to": clamped}


async def _pending(room: Room, session: str, taker: object | None, wait: float) -> list[Notice]:
    found = room.inbox.of_session(session, taker)
    if found or not wait:
        return found
    try:
        async with asyncio.timeout(wait):
            return await room.inbox.until_any(session, taker)
    except TimeoutError:
        return []


async def follow(room: Room, call: Call, ask: Message) -> Message:
    """Stream what is pending, and what comes, until the client has enough. An empty piece: nothing is left now."""
    session = room.session(ask) or call.session or "default"
    take, window = values.flag(ask, "take"), values.integer(ask, "window", 1, _MOST)
    count = 0
    async with aclosing(pushing.pushed(room, session, "notices", take, window)) as batches:
        async for batch in batches:
            count += len(batch)
            await call.send("notices", count, "".join(f"{light_json.dumps(one)}\n" for one in batch).encode())
    return {}


async def ack(room: Room, call: Call, ask: Message) -> Message:
    """On disk when it is answered. Acknowledging again is no error."""
    ids = values.texts(ask, "ids", _MOST_IDS)
    if not ids:
        raise BadValue("acknowledge what?", next="holdfast inbox")
    return (await room.inbox.ack(ids, "ack", room.session(ask)))._asdict()
