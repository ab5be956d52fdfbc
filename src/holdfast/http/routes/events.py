"""/api/v1/events: events of the past a page at a time, and those that come as server-sent events or on a WebSocket.

On the WebSocket every message from the daemon is a text: an array of events, or an object for anything else (`hello`,
`error`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.daemon.core.context import Message
from holdfast.daemon.handlers.events import first_cursor, query_of
from holdfast.daemon.listener import scope
from holdfast.errors import BadValue
from holdfast.http import sse
from holdfast.http.request import HttpRequest
from holdfast.http.responses import Response, Write, json_response
from holdfast.http.routing import EVENT_STREAM, JSON, HeaderField, Success, operation_route
from holdfast.http.websocket import WebSocket
from holdfast.ops.declare import Record, field
from holdfast.ops.events import Events

if TYPE_CHECKING:
    from holdfast.ops.kinds import Flag, Integer, Object

#: A page with more bytes than that ends early.
_LARGEST_PAGE = 8 << 20
_USUAL = 100


class EventsQuery(Events):
    """A page of events; as server-sent events or on a WebSocket, those that come."""

    limit: Integer = field(_USUAL, least=1, most=1000, help="A page: at most this many.")
    follow: Flag = field(True, help="Server-sent events: go on as more happens.")

    class Reply(Record):
        events: list[Object] = field(help="Oldest first.")
        next: Integer = field(help="The `since` of the next page.")
        newest: Integer = field()
        oldest: Integer = field()


async def events(request: HttpRequest) -> Response:
    if request.media == EVENT_STREAM:
        return _stream(request)
    return await request.while_connected(_page(request))


def _refuse(request: HttpRequest, name: str, why: str) -> None:
    if name in request.query:
        raise BadValue(why, next=f"leave {name} out")


async def _page(request: HttpRequest) -> Response:
    context = request.context
    _refuse(request, "follow", "a page ends by itself")
    await context.store.flush()
    pattern, since = query_of(context, Events.read(request.query))
    limit = request.query.get("limit", _USUAL)
    found: list[Message] = []
    position, size = since if since is not None else await first_cursor(context, False), 0
    call = request.call()
    async for found_now in context.stream.read(position, pattern):
        batch = scope.seen(context, call, found_now)
        for event, written in zip(batch.events, batch.texts, strict=True):
            found.append(event)
            size += len(written)
            if len(found) == limit or size > _LARGEST_PAGE:
                return await _page_response(request, found, event["seq"])
        position = batch.cursor
    return await _page_response(request, found, position)


async def _page_response(request: HttpRequest, found: list[Message], position: int) -> Response:
    oldest = await request.context.store.oldest_event()
    newest = request.context.stream.newest
    return json_response({"events": found, "next": position, "newest": newest, "oldest": oldest})


def _stream(request: HttpRequest) -> Response:
    _refuse(request, "limit", "a stream of events has no limit")
    query = dict(request.query)
    last = request.header("last-event-id")
    if last is not None:
        query["since"] = sse.read_last_id(last)
    follow = query.get("follow", True)
    pattern, since = query_of(request.context, Events.read(query))
    return sse.event_stream(request, lambda write: _write_events(request, write, since, pattern, follow))


async def _write_events(request: HttpRequest, write: Write, since: int | None, pattern: str, follow: bool) -> None:
    """First the position where it begins: a client that is cut off before the first event misses none either."""
    context, call = request.context, request.call()
    position = since if since is not None else await first_cursor(context, follow)
    await write(sse.event("place", {"since": position}, str(position)))
    newest = context.stream.newest
    async for found in (context.stream.follow if follow else context.stream.read)(position, pattern):
        batch = scope.seen(context, call, found)
        if batch.events:
            both = zip(batch.events, batch.texts, strict=True)
            await write(b"".join(sse.message(written, event.get("seq")) for event, written in both))
    await write(sse.event("end", {"newest": newest, "oldest": await context.store.oldest_event()}))


async def events_socket(request: HttpRequest, socket: WebSocket) -> None:
    _refuse(request, "limit", "a stream of events has no limit")
    _refuse(request, "follow", "a WebSocket always goes on")
    pattern, since = query_of(request.context, Events.read(request.query))
    position = request.context.stream.newest if since is None else since
    await socket.accept(text=True)
    await socket.control({"type": "hello", "since": position})
    await socket.run(request, _send_events(request, socket, position, pattern), socket.until_gone())


async def _send_events(request: HttpRequest, socket: WebSocket, position: int, pattern: str) -> None:
    call = request.call()
    async for batch in request.context.stream.follow(position, pattern):
        for message in scope.seen(request.context, call, batch).messages:
            await socket.send_text(message)


ROUTES = [
    operation_route(
        EventsQuery,
        events,
        serve_socket=events_socket,
        replies={
            200: Success("Events, oldest first", {JSON: EventsQuery.Reply, EVENT_STREAM: {"type": "string"}}),
            101: Success("The WebSocket is open", {}),
        },
        headers=(HeaderField("Last-Event-ID", {"type": "string"}, "Server-sent events: go on behind this one."),),
        about="On the WebSocket, texts: an array of events, or an object for anything else. See docs/http.md.",
    )
]
