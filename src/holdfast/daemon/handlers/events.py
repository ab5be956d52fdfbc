"""events: what happened, and what happens. publish: an event from outside."""

from __future__ import annotations

import time

from holdfast.daemon import strict, values
from holdfast.daemon.room import Call, Message, Room
from holdfast.errors import BadValue
from holdfast.model.events import Event, Receipt
from holdfast.wire.relay import LONGEST_TOPIC, is_topic, payload_fault

#: Several of them, joined by spaces.
_LONGEST_PATTERNS = 4096


async def handle(room: Room, call: Call, ask: Message) -> Message:
    """Streams events as lines of JSON; the offset of a piece is the number from which to go on behind it.

    The first piece is empty and tells where it begins. It ends by itself only without `follow`.
    """
    pattern, since = asked_for(room, ask)
    newest = room.stream.newest
    follow = values.flag(ask, "follow")
    after = since if since is not None else (newest if follow else 0)
    stream = room.stream.follow(after, pattern) if follow else room.stream.read(after, pattern)
    await call.send("events", after, b"")
    async for batch in stream:
        shown = strict.seen(room, call, batch)
        await call.send("events", shown.cursor, "".join(f"{text}\n" for text in shown.texts).encode())
    return {"newest": newest, "oldest": await room.store.oldest_event()}


async def publish(room: Room, call: Call, ask: Message) -> Message:
    """Put an event on the bus. It is kept when this returns."""
    topic = _topic(ask)
    payload = ask.get("payload")
    if payload is not None and not isinstance(payload, dict):
        raise BadValue("the payload must be an object")
    fields = dict(payload or {})
    fields.pop("seq", None)
    _check_envelope(fields)
    if (fault := payload_fault(fields)) is not None:
        raise BadValue(fault)
    receipt = Receipt()
    await room.store.record([Event(topic, time.time(), fields, receipt=receipt)])
    return {"seq": receipt.seq}


def asked_for(room: Room, ask: Message) -> tuple[str, int | None]:
    """The patterns, joined by spaces, and the number after which to begin; None where none was given."""
    pattern = values.text(ask, "pattern", _LONGEST_PATTERNS)
    chosen = " ".join((pattern if pattern is not None else "**").split())
    if not all(map(is_topic, chosen.split())) or not chosen:
        raise BadValue("pattern must be words joined by dots, or several such, with spaces in between")
    newest = room.stream.newest
    since = values.integer(ask, "since", 0)
    if since is not None and since > newest:
        raise BadValue(f"the newest event has the number {newest}; {since} is yet to come", next="leave `since` out")
    return chosen, since


def _check_envelope(fields: Message) -> None:
    """A relayed event brings its own type, time and source: they are what these may be, or not there."""
    if "type" in fields and not is_topic(values.needed_text(fields, "type", LONGEST_TOPIC)):
        raise BadValue("type must be words joined by dots")
    if "src" in fields:
        values.needed_text(fields, "src", LONGEST_TOPIC)
    if "ts" in fields and values.seconds(fields, "ts") is None:
        raise BadValue("ts must be a number of seconds, not null")


def _topic(ask: Message) -> str:
    topic = values.needed_text(ask, "topic", LONGEST_TOPIC)
    if not is_topic(topic):
        raise BadValue("topic must be words joined by dots")
    return topic
