"""/api/v1/processes/{id}/log: a page of output, or all of it as it comes."""

from __future__ import annotations

import asyncio
from base64 import b64encode

from holdfast.client import calls
from holdfast.client.conversation import Output
from holdfast.client.page import LogPage
from holdfast.daemon import values
from holdfast.daemon.room import Message
from holdfast.errors import BadValue, HoldfastError
from holdfast.http import sse
from holdfast.http.answers import Answer, Headers, Stream, Write, json_answer, nothing
from holdfast.http.following import follow
from holdfast.http.problems import Gone, problem
from holdfast.http.request import OCTETS, Request
from holdfast.http.schemas import choice, flag, integer, number, ref
from holdfast.http.table import JSON, Parameter, Reply, Route

TEXT = "text/plain; charset=utf-8"
_MOST_BYTES = 16 << 20
_BEAT = 15.0
_LONGEST_WAIT = 86400.0
#: What only a stream of events understands.
_STREAM_ONLY = ("follow", "until")


async def log(request: Request) -> Answer:
    if request.media == sse.MEDIA:
        return await _events(request)
    query = request.query
    if misplaced := [name for name in _STREAM_ONLY if name in query]:
        raise BadValue(f"{misplaced[0]} goes with a stream of events", next=f"send Accept: {sse.MEDIA}")
    if values.seconds(query, "wait"):
        await request.while_there(_wait(request))
    return _shown(request, await request.while_there(_page(request)))


async def _page(request: Request) -> LogPage:
    """As the client's `logs` has it: the same questions, asked on this side."""
    query = request.query
    values.integer(query, "bytes", 0, _MOST_BYTES)
    asking = calls.logs(
        request.id,
        lines=query.get("lines"),
        line=query.get("line"),
        offset=query.get("from"),
        bytes=query.get("bytes"),
        raw=_is_raw(request),
        stream=query.get("stream", "out"),
        consume=query.get("consume", False),
    )
    try:
        ask = next(asking)
        while True:
            ask = asking.send(await _asked(request, ask.arguments))
    except StopIteration as done:
        page: LogPage = done.value
        return page


async def _asked(request: Request, arguments: Message) -> tuple[Message, list[Output]]:
    pieces: list[Output] = []

    async def keep(stream: str, offset: int, data: bytes) -> None:
        pieces.append(Output(0, stream, offset, data))

    return await request.ask("logs", arguments, keep), pieces


def _is_raw(request: Request) -> bool:
    return request.media == OCTETS or request.query.get("view") == "raw"


def _shown(request: Request, page: LogPage) -> Answer:
    if request.media == OCTETS:
        return Answer(200, page.data, OCTETS, _marks(page))
    if request.media == TEXT:
        return Answer(200, page.text.encode(errors="replace"), TEXT, _marks(page))
    value = page.to_json()
    if _is_raw(request):
        del value["text"]
        value["data"] = b64encode(page.data).decode()
    process = request.find(page.process_id)
    return json_answer(
        {**value, "stream": request.query.get("stream", "out"), "status": request.room.show(process)["status"]}
    )


def _marks(page: LogPage) -> Headers:
    return [
        ("holdfast-start", str(page.start)),
        ("holdfast-next", str(page.next_offset)),
        ("holdfast-total", str(page.total)),
        ("holdfast-dropped", str(page.dropped)),
        ("holdfast-closed", "true" if page.closed else "false"),
    ]


async def _wait(request: Request) -> None:
    """Until there is output behind `from`, none can come any more, or the time is over."""
    room, query = request.room, request.query
    if "from" not in query:
        raise BadValue("wait goes with from: for what lies behind it", next="take the next_offset of the page before")
    process = request.find(request.id)
    stream = query.get("stream", "out")
    if process.has_ended or stream not in process.meta.streams:
        return
    at = max(values.integer(query, name, 0) or 0 for name in ("from", "beyond"))
    waits = {
        asyncio.ensure_future(room.outputs.beyond(process.id, stream, at)),
        asyncio.ensure_future(room.registry.wait_ended(process.id)),
    }
    try:
        await asyncio.wait(waits, timeout=_patience(request), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.wait(waits)


def _patience(request: Request) -> float:
    """As long as was asked for, or as long as is granted."""
    asked = values.seconds(request.query, "wait") or 0.0
    limit = request.room.settings.wait_limit or _LONGEST_WAIT
    return min(asked, limit)


async def _events(request: Request) -> Answer:
    query = dict(request.query)
    view, until = query.pop("view", "text"), query.pop("until", "exit")
    if values.seconds(query, "wait") is not None and query.get("follow", True):
        raise BadValue("a stream of events that goes on needs no wait", next="leave it out, or say follow=false")
    last = request.header("last-event-id")
    if last is not None:
        offset = sse.read_last_id(last)
        if offset is None:
            return nothing()
        query |= {"from": offset}
        query.pop("lines", None)
    if query.setdefault("follow", True) and "from" not in query and "lines" not in query:
        query["from"] = 0
    process = request.find(request.id)
    ask = {**query, "process": process.id}
    at_once = {"wait": 0} if "wait" in query else {}
    await request.ask(
        "logs", {**ask, **at_once, "follow": False, "bytes": 0, "consume": False}, _nowhere
    )  # whatever is wrong with it is said now

    async def produce(write: Write) -> None:
        if request.method == "HEAD":
            return
        beat = asyncio.ensure_future(_heartbeat(write))
        try:
            await request.while_there(_stream(request, ask, write, view == "raw", until == "exit"))
        finally:
            beat.cancel()

    return Stream(sse.MEDIA, produce)


async def _stream(request: Request, ask: Message, write: Write, raw: bool, to_exit: bool) -> None:
    pieces = sse.Pieces(str(ask.get("stream", "out")), 0, raw)

    async def send(stream: str, offset: int, data: bytes) -> None:
        if events := pieces.feed(offset, data):
            await write(events)

    try:
        answer = await follow(request, ask, send, to_exit)
        await write(pieces.flush() + sse.end_event(max(pieces.reach, answer["end"]), answer))
    except Gone:
        raise
    except HoldfastError as error:
        await write(sse.event("error", problem(error)))


async def _heartbeat(write: Write) -> None:
    while True:
        await asyncio.sleep(_BEAT)
        await write(sse.HEARTBEAT)


async def _nowhere(stream: str, offset: int, data: bytes) -> None:
    return


_MARKS = {
    "Holdfast-Start": "Where the page begins.",
    "Holdfast-Next": "Where the next page begins.",
    "Holdfast-Total": "How much was ever written.",
    "Holdfast-Dropped": "How much of it is no longer kept.",
    "Holdfast-Closed": "Whether nothing more can follow.",
}

ROUTES = [
    Route(
        "GET",
        "/api/v1/processes/{id}/log",
        "getLog",
        "A page of output; as a stream of events, all of it as it comes",
        {
            200: Reply(
                "A page, in the form that was accepted",
                {
                    JSON: ref("LogPage"),
                    TEXT: {"type": "string"},
                    OCTETS: {"type": "string", "format": "binary"},
                    sse.MEDIA: {"type": "string"},
                },
                _MARKS,
            ),
            204: Reply("The client has heard the end of the stream", {}),
        },
        log,
        query=(
            Parameter("stream", choice("out", "err", default="out"), "Of a process that was started with `split`."),
            Parameter("from", integer(), "Begin at this byte: the `next_offset` of the page before."),
            Parameter("line", integer(), "Begin at this line, counted from 0."),
            Parameter("lines", integer(), "So many lines: with `line` from there on, else the last ones."),
            Parameter("bytes", integer(0, _MOST_BYTES), "At most so many bytes; 1 MiB unless said otherwise."),
            Parameter(
                "view", choice("text", "raw", default="text"), "As a person would read it, or as it is (base64)."
            ),
            Parameter("wait", number(), "Seconds to wait for output behind `from`, where there is none yet."),
            Parameter("beyond", integer(), "With `wait`: for output behind this byte, where that lies behind `from`."),
            Parameter(
                "consume", flag(), "An owner who is shown the end of a process that has ended is not told of it again."
            ),
            Parameter("follow", flag(True), "Events: go on as more comes."),
            Parameter("until", choice("exit", "closed", default="exit"), "Events: follow until then."),
        ),
        headers=(Parameter("Last-Event-ID", {"type": "string"}, "Events: go on behind this one.", "header"),),
        about="Without `from`, `line` and `lines` it is the end of the log. Events: see docs/http.md.",
    ),
]
