"""/api/v1/processes/{id}/log: a page of output, or all of it as it comes."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from holdfast.client import calls
from holdfast.client.link import Output
from holdfast.client.results.page import LogPage
from holdfast.daemon.core.context import Message
from holdfast.errors import BadValue, HoldfastError
from holdfast.http import sse
from holdfast.http.request import HttpRequest
from holdfast.http.responses import ClientGone, Headers, Response, Write, json_response, problem
from holdfast.http.routing import EVENT_STREAM, JSON, OCTETS, HeaderField, Success, operation_route
from holdfast.ops.declare import field
from holdfast.ops.output import Logs

if TYPE_CHECKING:
    from typing import Literal

    from holdfast.ops.kinds import Flag, Size

TEXT = "text/plain; charset=utf-8"
_MOST_BYTES = 16 << 20
_LONGEST_WAIT = 86400.0
#: Parameters of a stream of events.
_STREAM_ONLY = ("follow", "until")


class LogQuery(Logs):
    """A page of output; as a stream of events, all of it as it comes."""

    bytes: Size | None = field(None, most=_MOST_BYTES, help="At most this many bytes; 1 MiB unless given.")
    view: Literal["text", "raw"] = field("text", help="Without escape sequences, or the bytes as they are (base64).")
    follow: Flag = field(True, help="Events: go on as more comes.")
    until: Literal["exit", "closed"] = field("exit", help="Events: follow until then.")


async def log(request: HttpRequest) -> Response:
    if request.media == EVENT_STREAM:
        return await _events(request)
    query = request.query
    if misplaced := [name for name in _STREAM_ONLY if name in query]:
        raise BadValue(f"{misplaced[0]} goes with a stream of events", next=f"send Accept: {EVENT_STREAM}")
    if query.get("wait"):
        await request.while_connected(_wait(request))
    return _response(request, await request.while_connected(_page(request)))


async def _page(request: HttpRequest) -> LogPage:
    """As the client's `logs` has it: the same requests, made on this side."""
    query = request.query
    reading = calls.logs(
        request.path["process"],
        lines=query.get("lines"),
        line=query.get("line"),
        offset=query.get("from"),
        bytes=query.get("bytes"),
        raw=_is_raw(request),
        stream=query.get("stream", "out"),
        consume=query.get("consume", False),
        from_time=query.get("from_time"),
        to_time=query.get("to_time"),
    )
    try:
        ask = next(reading)
        while True:
            ask = reading.send(await _read(request, ask.arguments))
    except StopIteration as done:
        page: LogPage = done.value
        return page


async def _read(request: HttpRequest, arguments: Message) -> tuple[Message, list[Output]]:
    pieces: list[Output] = []

    async def keep(stream: str, offset: int, data: bytes) -> None:
        pieces.append(Output(0, stream, offset, data))

    return await request.ask("logs", arguments, keep), pieces


def _is_raw(request: HttpRequest) -> bool:
    return request.media == OCTETS or request.query.get("view") == "raw"


def _response(request: HttpRequest, page: LogPage) -> Response:
    if request.media == OCTETS:
        return Response(200, page.data, OCTETS, _page_headers(page))
    if request.media == TEXT:
        return Response(200, page.text.encode(errors="replace"), TEXT, _page_headers(page))
    value = page.to_json()
    if _is_raw(request):
        del value["text"]
        value["data"] = b64encode(page.data).decode()
    process = request.find(page.process_id)
    return json_response(
        {**value, "stream": request.query.get("stream", "out"), "status": request.context.show(process)["status"]}
    )


def _page_headers(page: LogPage) -> Headers:
    return [
        ("holdfast-start", str(page.start)),
        ("holdfast-next", str(page.next_offset)),
        ("holdfast-total", str(page.total)),
        ("holdfast-dropped", str(page.dropped)),
        ("holdfast-closed", "true" if page.closed else "false"),
    ]


async def _wait(request: HttpRequest) -> None:
    """Until there is output behind `from`, no more can come, or the time is over."""
    context, query = request.context, request.query
    if "from" not in query:
        raise BadValue(
            "wait goes with from: it waits for output behind it", next="take the next_offset of the page before"
        )
    process = request.find()
    stream = query.get("stream", "out")
    if process.has_ended or stream not in process.meta.streams:
        return
    at = max(query.get(name) or 0 for name in ("from", "beyond"))
    waits: set[asyncio.Future[Any]] = {
        context.outputs.beyond(process.id, stream, at),
        asyncio.ensure_future(context.registry.wait_ended(process.id)),
    }
    try:
        await asyncio.wait(waits, timeout=_longest_wait(request), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.wait(waits)


def _longest_wait(request: HttpRequest) -> float:
    """The seconds asked for, or the daemon's limit."""
    limit = request.context.settings.wait_limit or _LONGEST_WAIT
    return min(float(request.query["wait"]), limit)


async def _events(request: HttpRequest) -> Response:
    query = dict(request.query)
    view = query.pop("view", "text")
    query.setdefault("until", "exit")
    if "wait" in query and query.get("follow", True):
        raise BadValue("a stream of events that goes on needs no wait", next="leave it out, or give follow=false")
    last = request.header("last-event-id")
    if last is not None:
        offset = sse.read_last_id(last)
        if offset is None:
            return Response(204)
        query |= {"from": offset}
        query.pop("lines", None)
    if query.setdefault("follow", True) and "from" not in query and "lines" not in query:
        query["from"] = 0
    process = request.find()
    ask = {**query, "process": process.id}
    at_once = {"wait": 0} if "wait" in query else {}
    # An invalid request is refused before the stream begins.
    await request.ask("logs", {**ask, **at_once, "follow": False, "bytes": 0, "consume": False}, discard)

    return sse.event_stream(request, lambda write: _stream(request, ask, write, view == "raw"))


async def _stream(request: HttpRequest, ask: Message, write: Write, raw: bool) -> None:
    pieces = sse.OutputEvents(str(ask.get("stream", "out")), 0, raw)

    async def send(stream: str, offset: int, data: bytes) -> None:
        if events := pieces.feed(offset, data):
            await write(events)

    try:
        reply = await request.ask("logs", ask, send)
        await write(pieces.flush() + sse.end_event(max(pieces.reach, reply["end"]), reply))
    except ClientGone:
        raise
    except HoldfastError as error:
        await write(sse.event("error", problem(error)))


async def discard(stream: str, offset: int, data: bytes) -> None:
    return


_PAGE_HEADERS = {
    "Holdfast-Start": "Where the page begins.",
    "Holdfast-Next": "Where the next page begins.",
    "Holdfast-Total": "How much was ever written.",
    "Holdfast-Dropped": "How much of it is no longer kept.",
    "Holdfast-Closed": "Whether nothing more can follow.",
}
_PAGE = {
    JSON: {"$ref": "#/components/schemas/LogPage"},
    TEXT: {"type": "string"},
    OCTETS: {"type": "string", "format": "binary"},
    EVENT_STREAM: {"type": "string"},
}

ROUTES = [
    operation_route(
        LogQuery,
        log,
        replies={
            200: Success("A page, as the accepted media type", _PAGE, _PAGE_HEADERS),
            204: Success("The client has had the end of the stream", {}),
        },
        headers=(HeaderField("Last-Event-ID", {"type": "string"}, "Events: go on behind this one."),),
        about="Without `from`, `line` and `lines` it is the end of the log. Events: see docs/http.md.",
    )
]
