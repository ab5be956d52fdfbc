"""events: past and future events as a stream. publish: an event of another program."""

from __future__ import annotations

import time

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.listener import scope
from holdfast.errors import BadValue
from holdfast.model.events import Event, Receipt
from holdfast.ops.events import Events, Publish
from holdfast.ops.kinds import SecondsKind, TextKind
from holdfast.ops.processes import ProcessEvents
from holdfast.wire.relay import LONGEST_TOPIC, is_topic, payload_fault

_TOPIC = TextKind({"longest": LONGEST_TOPIC, "required_text": True})
_TIME = SecondsKind({})

#: An event may have a time shortly before that of the request that it belongs to.
_EARLIER = 60.0


async def handle(context: DaemonContext, call: Call, ask: Events) -> Message:
    """Streams events as lines of JSON. The offset of a piece is the cursor behind it.

    The first piece is empty and carries the first cursor. Without `follow` it replies after the newest event.
    """
    if not ask.follow:
        await context.store.flush()
    pattern, since = query_of(context, ask)
    newest = context.stream.newest
    after = since if since is not None else await first_cursor(context, ask.follow)
    stream = context.stream.follow(after, pattern) if ask.follow else context.stream.read(after, pattern)
    await call.send("events", after, b"")
    async for batch in stream:
        shown = scope.seen(context, call, batch)
        await call.send("events", shown.cursor, "".join(f"{text}\n" for text in shown.texts).encode())
    return {"newest": newest, "oldest": await context.store.oldest_event()}


async def publish(context: DaemonContext, call: Call, ask: Publish) -> Message:
    """The event is on disk, with the number in the reply."""
    if not is_topic(ask.topic):
        raise BadValue("topic must be words joined by dots")
    fields = dict(ask.payload or {})
    fields.pop("seq", None)
    _check_envelope(fields)
    if (fault := payload_fault(fields)) is not None:
        raise BadValue(fault)
    if ask.transient:
        context.stream.publish_transient(ask.topic, fields)
        return {"seq": 0}
    receipt = Receipt()
    await context.store.record([Event(ask.topic, time.time(), fields, receipt=receipt)])
    return {"seq": receipt.seq}


def query_of(context: DaemonContext, ask: Events) -> tuple[str, int | None]:
    """The patterns, joined by spaces, and the number after which to begin; None where none was given."""
    chosen = " ".join(ask.pattern.split())
    if not all(map(is_topic, chosen.split())) or not chosen:
        raise BadValue("pattern must be words joined by dots, or several such, with spaces in between")
    newest, since = context.stream.newest, ask.since
    if since is not None and since > newest:
        raise BadValue(f"the newest event has the number {newest}; {since} is yet to come", next="leave `since` out")
    return chosen, since


async def first_cursor(context: DaemonContext, follow: bool) -> int:
    """Where to begin if no number was given: with the oldest event that is kept; to follow, with the next one."""
    return context.stream.newest if follow else await context.store.oldest_event() - 1


def _check_envelope(fields: Message) -> None:
    """A relayed event may bring its own type, time and source. Raises BadValue for invalid ones."""
    if "type" in fields and not is_topic(_TOPIC.check(fields["type"], "type")):
        raise BadValue("type must be words joined by dots")
    if "src" in fields:
        _TOPIC.check(fields["src"], "src")
    if "ts" in fields:
        _TIME.check(fields["ts"], "ts")


async def of_process(context: DaemonContext, call: Call, ask: ProcessEvents) -> Message:
    """Those that are on disk, found by the id of the process in them."""
    process = context.registry.identify(ask.process)
    await context.store.flush()
    found = await context.store.events_of(process.id, process.meta.requested_at - _EARLIER, ask.before, ask.limit + 1)
    events = ({**one.envelope, "seq": one.seq} for one in found)
    about = [event for event in events if process.id in (event.get("id"), event.get("process"))]
    return {"events": about[-ask.limit :], "more": len(found) > ask.limit}
