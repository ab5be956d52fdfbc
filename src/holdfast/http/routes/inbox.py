"""/api/v1/sessions/{session}/inbox: what a session is yet to be told, at once or as it comes; and acknowledging it.

On the WebSocket every message is a text. From the daemon: a notification, or an object with a `type`: `acked`, `error`.
To it: `{"ack": [ids]}`.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from holdfast.daemon import pushing, strict, values
from holdfast.daemon.room import Message
from holdfast.errors import BadValue, HoldfastError
from holdfast.http import open_socket, sse
from holdfast.http.answers import Answer, Stream, Write, json_answer
from holdfast.http.problems import Gone
from holdfast.http.request import Request
from holdfast.http.schemas import SESSION, flag, integer, maybe, number, obj, ref, texts
from holdfast.http.socket import Socket
from holdfast.http.table import JSON, Body, Parameter, Reply, Route
from holdfast.wire import light_json

_MOST = 1000
_BEAT = 15.0
#: For how long what was taken without a connection that stays is kept from others.
_LEASE = 60.0
_PAGE_ONLY, _STREAM_ONLY = ("wait", "limit", "raw"), ("window",)


def _session(request: Request) -> str:
    """The session that the path names. Raises BadValue."""
    named = values.session(request.parameters)
    assert named is not None
    return strict.session_for(request.room, request.call(), named)


def _refuse(request: Request, names: tuple[str, ...], goes_with: str) -> None:
    if misplaced := [name for name in names if name in request.query]:
        raise BadValue(f"{misplaced[0]} goes with {goes_with}", next="leave it out")


async def inbox(request: Request) -> Answer:
    if request.media == sse.MEDIA:
        return _stream(request)
    _refuse(request, _STREAM_ONLY, f"a stream: Accept: {sse.MEDIA}")
    lease = object()
    ask = {**request.query, "session": _session(request)}
    try:
        return json_answer(await request.while_there(request.ask("inbox", ask, taker=lease)))
    finally:
        if request.query.get("take"):
            asyncio.get_running_loop().call_later(_LEASE, request.room.inbox.give_back, lease)


def _stream(request: Request) -> Answer:
    _refuse(request, _PAGE_ONLY, "a page")
    session, query = _session(request), request.query
    take, window = values.flag(query, "take"), values.integer(query, "window", 1, _MOST)

    async def produce(write: Write) -> None:
        if request.method == "HEAD":
            return
        beat = asyncio.ensure_future(_heartbeat(write))
        try:
            await request.while_there(_push(request, write, session, take, window))
        finally:
            beat.cancel()

    return Stream(sse.MEDIA, produce)


async def _push(request: Request, write: Write, session: str, take: bool, window: int | None) -> None:
    await write(sse.HEARTBEAT)  # it is open
    async with aclosing(pushing.pushed(request.room, session, "sse", take, window)) as batches:
        async for batch in batches:
            told = [sse.event("notification", one, one["id"]) for one in batch]
            await write(b"".join(told) or sse.event("idle", {}))


async def _heartbeat(write: Write) -> None:
    while True:
        await asyncio.sleep(_BEAT)
        await write(sse.HEARTBEAT)


async def inbox_socket(request: Request, socket: Socket) -> None:
    _refuse(request, _PAGE_ONLY, "a page")
    session, query = _session(request), request.query
    take, window = values.flag(query, "take"), values.integer(query, "window", 1, _MOST)
    await socket.accept(text=True)
    await open_socket.serve(
        request, socket, _send(request, socket, session, take, window), _hear(request, socket, session)
    )


async def _send(request: Request, socket: Socket, session: str, take: bool, window: int | None) -> None:
    async with aclosing(pushing.pushed(request.room, session, "websocket", take, window)) as batches:
        async for batch in batches:
            for one in batch:
                await socket.send_text(light_json.dumps(one))


async def _hear(request: Request, socket: Socket, session: str) -> None:
    while True:
        try:
            said = await socket.receive_text()
        except Gone:
            return
        try:
            await socket.control({"type": "acked", **await request.ask("ack", _asked(said, session))})
        except HoldfastError as error:
            if isinstance(error, Gone):
                return
            await socket.control({"type": "error", **error.to_wire()})


def _asked(said: str | None, session: str) -> Message:
    try:
        value = light_json.loads(said or "")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or value.keys() != {"ack"}:
        raise BadValue("this message is not understood", next='{"ack": ["note_…"]}')
    return {"ids": value["ack"], "session": session}


async def ack(request: Request) -> Answer:
    asked = await request.fields(_ACK)
    return json_answer(await request.ask("ack", {**asked, "session": _session(request)}))


async def ack_any(request: Request) -> Answer:
    return json_answer(await request.ask("ack", await request.fields(_ACK_ANY)))


_ACKED = Reply(
    "On disk",
    {
        JSON: obj(
            {
                "acked": texts("By this request."),
                "known": texts("Before it."),
                "unknown": texts("Those of which nothing is known, or that are another session's."),
            }
        )
    },
)
_IDS = texts("Ids of notifications.")

_ACK = Route(
    "POST",
    "/api/v1/sessions/{session}/inbox/ack",
    "ackNotifications",
    "Acknowledge notifications of a session: they are never told again",
    {200: _ACKED},
    ack,
    body=Body({"ids": _IDS}, "Which.", required=("ids",)),
    errors=(507,),
    needs="ack",
)

_ACK_ANY = Route(
    "POST",
    "/api/v1/ack",
    "ackAnyNotifications",
    "Acknowledge notifications, whosever they are",
    {200: _ACKED},
    ack_any,
    body=Body({"ids": _IDS, "session": SESSION}, "Which.", required=("ids",)),
    errors=(507,),
    needs="ack",
)

ROUTES = [
    Route(
        "GET",
        "/api/v1/sessions/{session}/inbox",
        "getInbox",
        "What a session is yet to be told; as a stream of events or on a WebSocket, also what comes",
        {
            200: Reply(
                "Notifications, oldest first",
                {
                    JSON: obj(
                        {
                            "notifications": {"type": "array", "items": ref("Notification")},
                            "waited": {"type": "number"},
                            "clamped_to": maybe({"type": "number"}),
                        }
                    ),
                    sse.MEDIA: {"type": "string"},
                },
            ),
            101: Reply("The WebSocket is open", {}),
        },
        inbox,
        inbox_socket,
        query=(
            Parameter("wait", number(), "A page: seconds to wait for something, where there is nothing yet."),
            Parameter("limit", integer(1, _MOST, default=_MOST), "A page: the oldest, at most so many."),
            Parameter(
                "take",
                flag(),
                "Keep what is given from others that take: until it is acknowledged or the stream is closed; "
                "of a page, for a minute.",
            ),
            Parameter("raw", flag(), "A page: the output of ends as it is; without, secrets in it are masked."),
            Parameter("window", integer(1, _MOST), "Streams: so many that are not acknowledged at most."),
        ),
        about="Everything is told again until it is acknowledged, on one stream once. See docs/inbox.md.",
        needs="inbox",
    ),
    _ACK,
    _ACK_ANY,
]
