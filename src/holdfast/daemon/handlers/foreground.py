"""foreground: start a command, wait until it ends, and read its output, in one request of the `terminal` tool."""

from __future__ import annotations

import asyncio
import codecs
import time

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.handlers import start, wait
from holdfast.daemon.notices import objects
from holdfast.errors import BadValue, HoldfastError
from holdfast.model import shortening
from holdfast.model.events import Event
from holdfast.model.process import ProcessId
from holdfast.model.text import TextView
from holdfast.ops.processes import Wait
from holdfast.ops.start import Foreground
from holdfast.places.base import Log
from holdfast.records import Struct

#: A log of up to this size is read as a whole, so that progress is collapsed; of a longer one, both ends are read.
_WHOLE = 4 << 20
_HEAD, _TAIL = 256 << 10, 512 << 10
#: A command is waited for at least this long.
_SHORTEST_WAIT = 0.1


class _Piece(Struct, frozen=True):
    text: str
    start: int
    end: int


async def handle(context: DaemonContext, call: Call, ask: Foreground) -> Message:
    """As `start`, then `wait`. Repeated with the same id, it waits for the process that the first request started.

    A completion in the reply counts as delivered when the client has confirmed the reply, as in `wait`.
    """
    if ask.queue or ask.after or ask.after_success:
        raise BadValue("a command in the foreground cannot wait in a queue", next="start it in the background")
    asked_at, begun_at = time.time(), time.monotonic()
    budget = shortening.CharacterBudget(ask.characters, ask.tokens)
    process_id = ProcessId(ask.id)
    called = {"tool": "terminal", "session": context.current_name(ask.session) or call.owner, "id": process_id}
    known = context.registry.get(process_id)
    is_new = known is None
    if known is None:
        _record(context, "tool.start", called)
    else:  # repeated after a cut: the call began with the first request
        begun_at -= max(0.0, asked_at - known.meta.requested_at)
    with context.inbox.awaiting([process_id], call.owner, True):
        try:
            started = await _started(context, call, ask)
        except HoldfastError as error:
            status = {"status": "error", "reason": error.code, "duration": _since(begun_at)}
            _record(context, "tool.complete", {**called, **status})
            raise
        found: Message = started["process"]
        begun = found["started_at"] if found["id"] == process_id and not is_new else None
        left = ask.timeout - (time.time() - (begun or time.time()))
        if ask.within is not None:
            left = min(left, ask.within - (time.time() - asked_at))
        until_end = Wait(processes=[found["id"]], timeout=max(left, _SHORTEST_WAIT), or_input=0.0)
        waited = await wait.handle(context, call, until_end)
    process: Message = waited["processes"][0]
    known = context.registry.get(ProcessId(process["id"]))
    is_complete = known is None or known.output_closed
    if known is None or (is_complete and not process["output_bytes"]):
        shown: Message = {"text": "", "is_folded": False, "start": 0, "end": 0, "total": 0, "omitted": 0}
    else:
        log = context.place_of(known).log(known.id, "out")
        shown = await context.read(_shown, log, process["id"], budget, is_complete)
    shown["text"] = await context.secrets.mask(shown["text"], called["session"])
    _record_end(context, {**called, "id": process["id"]}, process, begun_at)
    return {
        "process": process,
        "notes": started["notes"],
        "shown": shown,
        "notifications": await _notices(context, call, called["session"], ask.notices),
        **({"consumes": call.consumed} if call.consumed else {}),
    }


async def _started(context: DaemonContext, call: Call, ask: Foreground) -> Message:
    """The start completes when the client gives up, as a `start` does."""
    task = context.background.start(start.handle(context, call, ask), "request")
    try:
        started: Message = await asyncio.shield(task)
        return started
    except asyncio.CancelledError:
        call.given_up.set()
        raise


async def _notices(context: DaemonContext, call: Call, session: str, most: int) -> list[Message]:
    """Other pending notices of the session, taken for this client, which acknowledges them."""
    found = context.inbox.of_session(session, call.taker)[:most]
    context.inbox.take(found, call.taker)
    return await objects.handed_out(context, found, session, call.taker, "inbox")


def _record(context: DaemonContext, topic: str, fields: Message) -> None:
    context.store.record_soon([Event(topic, time.time(), fields)])


def _since(begun_at: float) -> float:
    return round(time.monotonic() - begun_at, 3)


def _record_end(context: DaemonContext, called: Message, process: Message, begun_at: float) -> None:
    reason = process["reason"]
    if process["status"] != "ended":
        reason = "moved_to_background" if process["needs_input"] is None else "needs_input"
        _record(context, "tool.progress", {**called, "reason": reason})
    status = {"status": process["status"], "reason": reason, "exit_code": process["exit_code"]}
    _record(context, "tool.complete", {**called, **status, "duration": _since(begun_at)})


def _shown(log: Log, process_id: str, size: shortening.CharacterBudget, is_complete: bool) -> Message:
    with log:
        first, total = log.extent()
        if total - first <= _WHOLE:
            head = tail = _read(log, first, total, first > 0, is_complete)
            shown = shortening.excerpt_of_text(head.text, size, process_id)
        else:
            head = _read(log, first, first + _HEAD, first > 0, False)
            tail = _read(log, total - _TAIL, total, True, is_complete)
            shown = shortening.excerpt_of_ends(head.text, tail.start - head.end, tail.text, size, process_id)
    omitted = 0 if head is tail else tail.start - head.end
    where = {"start": head.start, "end": tail.end, "total": total, "omitted": omitted}
    return {"text": shown.text, "is_folded": shown.is_folded, **where}


def _read(log: Log, start: int, end: int, is_cut: bool, is_complete: bool) -> _Piece:
    """From the first whole line on, where the beginning is cut; to the last whole character, unless it is complete."""
    data, at = b"", start
    while at < end and (chunk := log.read(at, end - at)).data:
        start = start if data else chunk.offset
        data, at = data + chunk.data, chunk.end
    if is_cut and 0 < (cut := data.find(b"\n") + 1) < len(data):
        data, start = data[cut:], start + cut
    last = b"" if is_complete else data[-4:]
    data = data[: len(data) - len(last) + codecs.utf_8_decode(last, "replace", False)[1]]
    view = TextView()
    return _Piece(view.feed(data) + view.close(), start, start + len(data))
