"""sinks, sink_test, sink_dead, sink_retry: the sinks, and messages that could not be sent."""

from __future__ import annotations

import asyncio
import time

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.workers import sink_messages
from holdfast.errors import BadValue, NotFound
from holdfast.model.notices import sinks
from holdfast.model.notices.sinks import KINDS, Outgoing, Sink, shown_address
from holdfast.ops.daemon import SinkDead, SinkRetry, Sinks, SinkTest
from holdfast.records import asdict
from holdfast.store import outbox
from holdfast.store.outbox import Tally


async def handle(context: DaemonContext, call: Call, ask: Sinks) -> Message:
    """Every sink with its counters; also removed ones for which messages are still kept."""
    await context.sinks.refresh()
    tallies = await context.store.read(outbox.tallies)
    now = time.time()
    shown = [_sink(sink, tallies.pop(sink.name, Tally()), now) for sink in context.sinks.all.values()]
    gone = [_gone(name, tally) for name, tally in sorted(tallies.items()) if tally.pending or tally.dead]
    return {"sinks": shown + gone, "config": context.paths.config, "trouble": context.sinks.trouble}


async def test(context: DaemonContext, call: Call, ask: SinkTest) -> Message:
    """Sends a test message to one sink or to all. Replies when the results are known."""
    await context.sinks.refresh()
    name = ask.name
    chosen = [sink for sink in context.sinks.all.values() if name is None or sink.name == name]
    if not chosen:
        known = ", ".join(context.sinks.all)
        what = "no sink is configured" if name is None or not known else f"no sink is called {name[:80]!r}"
        raise NotFound(what, next=f"known: {known}" if known else f"add [[sinks]] to {context.paths.config}")
    return {"results": await asyncio.gather(*(_tested(context, sink) for sink in chosen))}


async def dead(context: DaemonContext, call: Call, ask: SinkDead) -> Message:
    """Messages that were given up, the newest first."""
    return {"dead": [_row(row) for row in await context.store.read(lambda db: outbox.dead(db, ask.limit))]}


async def retry(context: DaemonContext, call: Call, ask: SinkRetry) -> Message:
    """These messages, or all that were given up, are due again, on disk with the reply."""
    if ask.all == (ask.ids is not None):
        raise BadValue("name what to try again, or all", next="holdfast notify dead")
    seqs = None if ask.all else ask.ids
    retried: list[int] = []
    await context.store.change(lambda db: retried.extend(outbox.retry(db, seqs, time.time())))
    context.sinks.wake()
    unknown = [seq for seq in seqs or () if seq not in set(retried)]
    return {"retried": retried, "unknown": unknown}


async def _tested(context: DaemonContext, sink: Sink) -> Message:
    began = time.monotonic()
    result = await sink_messages.test(context, sink)
    took = time.monotonic() - began
    return {"sink": sink.name, "sent": result.sent, "error": result.error or None, "took": took}


def _sink(sink: Sink, tally: Tally, now: float) -> Message:
    return {
        "name": sink.name,
        "way": sink.way,
        "to": _to(sink),
        "state": _state(sink, tally, now),
        "enabled": sink.enabled,
        "kinds": [kind for kind in KINDS if kind in sink.kinds],
        "sessions": list(sink.sessions),
        "outcomes": sink.outcomes,
        "quiet": str(sink.quiet) if sink.quiet is not None else None,
        "tries": sink.tries,
        **asdict(tally),
        "next_at": None if tally.next_at is None else sinks.not_before(sink, max(now, tally.next_at)),
    }


def _gone(name: str, tally: Tally) -> Message:
    nothing = dict.fromkeys(("way", "to", "kinds", "sessions", "outcomes", "quiet", "tries"))
    return {"name": name, "state": "gone", "enabled": False, **nothing, **asdict(tally)}


def _state(sink: Sink, tally: Tally, now: float) -> str:
    if not sink.enabled:
        return "off"
    if tally.last_error_at is not None and tally.last_error_at > (tally.last_sent_at or 0.0):
        return "failing"
    return "quiet" if sinks.not_before(sink, now) > now else "ok"


def _to(sink: Sink) -> str:
    """Where it sends to, as far as that may be shown."""
    address = sink.address
    if sink.way == "desktop":
        return "this desktop"
    if address.env is not None:
        return f"${address.env}"
    return address.file if address.file is not None else shown_address(address.text or "")


def _row(row: Outgoing) -> Message:
    fields = {name: row.body.get(name) for name in ("kind", "process", "session", "at")}
    counted = {"attempts": row.attempts, "error": row.last_error, "dead_at": row.dead_at}
    return {"id": row.seq, "sink": row.sink, "notification": row.body.get("id"), **fields, **counted}
