"""/api/v1/events: what happened, a page at a time; what happens, as server-sent events or on a WebSocket; and
publishing.

On the WebSocket every message from the daemon is a text: an object for what is no event (`hello`, `error`), an array
for events.
"""

from __future__ import annotations

import asyncio

from holdfast.daemon import strict, values
from holdfast.daemon.handlers.events import asked_for
from holdfast.daemon.room import Message
from holdfast.daemon.stream import Batch
from holdfast.errors import BadValue
from holdfast.http import open_socket, sse
from holdfast.http.answers import Answer, Stream, Write, json_answer
from holdfast.http.request import Request
from holdfast.http.schemas import ANYTHING, flag, integer, obj, text
from holdfast.http.socket import Socket
from holdfast.http.table import JSON, Body, Parameter, Reply, Route
from holdfast.ops.events import Events
from holdfast.wire.relay import LONGEST_TOPIC

_USUAL = 100
_MOST = 1000
#: A page with more bytes than that ends early.
_LARGEST_PAGE = 8 << 20
_BEAT = 15.0


async def events(request: Request) -> Answer:
    if request.media == sse.MEDIA:
        return _stream(request)
    return await request.while_there(_page(request))


def _refuse(request: Request, name: str, why: str) -> None:
    if name in request.query:
        raise BadValue(why, next=f"leave {name} out")


async def _page(request: Request) -> Answer:
    room = request.room
    _refuse(request, "follow", "a page ends by itself")
    pattern, since = asked_for(room, Events.read(request.query))
    limit = values.integer(request.query, "limit", 1, _MOST) or _USUAL
    found: list[Message] = []
    place, size = since or 0, 0
    call = request.call()
    async for found_now in room.stream.read(place, pattern):
        batch = strict.seen(room, call, found_now)
        for event, written in zip(batch.events, batch.texts, strict=True):
            found.append(event)
            size += len(written)
            if len(found) == limit or size > _LARGEST_PAGE:
                return _shown(request, found, event["seq"], await room.store.oldest_event())
        place = batch.cursor
    return _shown(request, found, place, await room.store.oldest_event())


def _shown(request: Request, found: list[Message], place: int, oldest: int) -> Answer:
    newest = request.room.stream.newest
    return json_answer({"events": found, "next": place, "newest": newest, "oldest": oldest})


def _stream(request: Request) -> Answer:
    _refuse(request, "limit", "a stream of events has no limit")
    query = dict(request.query)
    last = request.header("last-event-id")
    if last is not None:
        query["since"] = sse.read_last_id(last)
    follow = values.flag(query, "follow", True)
    pattern, since = asked_for(request.room, Events.read(query))
    place = since if since is not None else (request.room.stream.newest if follow else 0)

    async def produce(write: Write) -> None:
        if request.method != "HEAD":
            await request.while_there(_Told(request, write, place).tell(pattern, follow))

    return Stream(sse.MEDIA, produce)


class _Told:
    """One who is told by server-sent events, and up to where."""

    def __init__(self, request: Request, write: Write, place: int) -> None:
        self._room = request.room
        self._call = request.call()
        self._write = write
        self._place = place

    async def tell(self, pattern: str, follow: bool) -> None:
        """First where it begins, so that whoever is cut off before the first event misses none either."""
        await self._write(sse.event("place", {"since": self._place}, str(self._place)))
        beat = asyncio.ensure_future(self._beat())
        stream = self._room.stream.follow if follow else self._room.stream.read
        newest = self._room.stream.newest
        try:
            async for found in stream(self._place, pattern):
                batch = strict.seen(self._room, self._call, found)
                self._place = batch.cursor
                if batch.events:
                    await self._write(_messages(batch))
            await self._write(sse.event("end", {"newest": newest, "oldest": await self._room.store.oldest_event()}))
        finally:
            beat.cancel()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_BEAT)
            await self._write(sse.HEARTBEAT)


def _messages(batch: Batch) -> bytes:
    return b"".join(
        sse.message(written, event.get("seq")) for event, written in zip(batch.events, batch.texts, strict=True)
    )


async def events_socket(request: Request, socket: Socket) -> None:
    _refuse(request, "limit", "a stream of events has no limit")
    _refuse(request, "follow", "a WebSocket always goes on")
    pattern, since = asked_for(request.room, Events.read(request.query))
    place = request.room.stream.newest if since is None else since
    await socket.accept(text=True)
    await socket.control({"type": "hello", "since": place})
    await open_socket.serve(request, socket, _send(request, socket, place, pattern), open_socket.until_gone(socket))


async def _send(request: Request, socket: Socket, place: int, pattern: str) -> None:
    call = request.call()
    async for batch in request.room.stream.follow(place, pattern):
        for message in strict.seen(request.room, call, batch).messages:
            await socket.send_text(message)


async def publish(request: Request) -> Answer:
    return json_answer(await request.ask("publish", await request.fields(_PUBLISH)))


_PUBLISH = Route(
    "POST",
    "/api/v1/events",
    "publishEvent",
    "Put an event on the bus",
    {200: Reply("It is kept, under this number", {JSON: obj({"seq": {"type": "integer"}})})},
    publish,
    body=Body(
        {"topic": text(LONGEST_TOPIC, pattern=r"^[!-~]+$"), "payload": {"type": ["object", "null"]}},
        "What happened.",
        required=("topic",),
    ),
    errors=(507,),
    needs="publish",
)

ROUTES = [
    Route(
        "GET",
        "/api/v1/events",
        "getEvents",
        "A page of what happened; as a stream of events or on a WebSocket, what happens",
        {
            200: Reply(
                "Events, oldest first; `next` is the `since` of the next page",
                {
                    JSON: obj(
                        {
                            "events": {"type": "array", "items": ANYTHING},
                            "next": {"type": "integer"},
                            "newest": {"type": "integer"},
                            "oldest": {"type": "integer"},
                        }
                    ),
                    sse.MEDIA: {"type": "string"},
                },
            ),
            101: Reply("The WebSocket is open", {}),
        },
        events,
        events_socket,
        query=(
            Parameter("pattern", text(4096), "Topics, `*` for a word, `**` for any number; several with spaces."),
            Parameter("since", integer(), "Events behind this number; streams begin with what comes next without it."),
            Parameter("limit", integer(1, _MOST, default=_USUAL), "At most so many; for a page alone."),
            Parameter("follow", flag(True), "Streams: go on as more happens."),
        ),
        headers=(Parameter("Last-Event-ID", {"type": "string"}, "Streams: go on behind this one.", "header"),),
        about="The WebSocket brings texts: an object for what is no event, an array for events. See docs/http.md.",
        needs="events",
    ),
    _PUBLISH,
]
