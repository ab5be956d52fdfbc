"""events: what happened, and what happens. publish: an event from outside."""

from __future__ import annotations

import time

from holdfast.daemon import values
from holdfast.daemon.room import Call, Message, Room
from holdfast.errors import BadValue
from holdfast.events.topics import segments
from holdfast.model.happenings import Event
from holdfast.wire import light_json

_LONGEST_TOPIC = 256
#: An event is news, not a parcel.
_LARGEST_PAYLOAD = 256 << 10


async def handle(room: Room, call: Call, ask: Message) -> Message:
    """Streams events as lines of JSON; the offset of a piece is the number from which to go on behind it.

    The first piece is empty and tells where it begins. It ends by itself only without `follow`.
    """
    pattern = _topic(ask, "pattern") if ask.get("pattern") is not None else "**"
    newest = room.stream.newest
    since = values.integer(ask, "since", 0)
    if since is not None and since > newest:
        raise BadValue(f"the newest event has the number {newest}; {since} is yet to come", next="leave `since` out")
    follow = values.flag(ask, "follow")
    after = since if since is not None else (newest if follow else 0)
    stream = room.stream.follow(after, pattern) if follow else room.stream.read(after, pattern)
    await call.send("events", after, b"")
    async for batch in stream:
        lines = "".join(f"{light_json.dumps(envelope)}\n" for envelope in batch.events)
        await call.send("events", batch.cursor, lines.encode())
    return {"newest": newest, "oldest": await room.store.oldest_event()}


async def publish(room: Room, call: Call, ask: Message) -> Message:
    """Put an event on the bus. It is kept when this returns."""
    topic = _topic(ask, "topic")
    payload = ask.get("payload")
    if payload is not None and not isinstance(payload, dict):
        raise BadValue("the payload must be an object")
    fields = dict(payload or {})
    fields.pop("seq", None)
    if len(light_json.dumps(fields)) > _LARGEST_PAYLOAD:
        raise BadValue(f"the payload has more than {_LARGEST_PAYLOAD} bytes")
    await room.store.record([Event(topic, time.time(), fields)])
    return {"seq": room.stream.newest}


def _topic(ask: Message, key: str) -> str:
    topic = values.needed_text(ask, key, _LONGEST_TOPIC)
    if not topic.isprintable() or " " in topic:
        raise BadValue(f"{key} must be words joined by dots")
    segments(topic, key)
    return topic
