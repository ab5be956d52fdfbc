"""/api/v1/sessions/{session}/inbox: pending notifications of a session, at once or as they come; and acknowledging.

On the WebSocket every message is a text. From the daemon: a notification, or an object with a `type`: `acked`, `error`.
To the daemon: `{"ack": [ids]}`.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from holdfast import light_json
from holdfast.daemon.core.context import Message
from holdfast.daemon.listener import scope
from holdfast.daemon.notices import push
from holdfast.errors import BadValue, HoldfastError
from holdfast.http import sse
from holdfast.http.request import HttpRequest
from holdfast.http.responses import ClientGone, Response, Write, json_response
from holdfast.http.routes.plain import plain_route
from holdfast.http.routing import EVENT_STREAM, JSON, Success, operation_route
from holdfast.http.websocket import WebSocket
from holdfast.ops.declare import Scope, Traits, field
from holdfast.ops.sessions import MOST_NOTIFICATIONS, Ack, Inbox
from holdfast.wire import json_bounds

if TYPE_CHECKING:
    from holdfast.ops.kinds import Integer

#: For how long notifications that were taken with a page are kept from others.
_LEASE = 60.0
_PAGE_ONLY, _STREAM_ONLY = ("wait", "limit", "raw", "peek", "process", "since"), ("window",)


class InboxQuery(Inbox):
    """Pending notifications of a session; as server-sent events or on a WebSocket, also those that come."""

    window: Integer | None = field(
        None, least=1, most=MOST_NOTIFICATIONS, help="Streams: at most this many that are not acknowledged."
    )


def _session(request: HttpRequest) -> str:
    """The session that the path names, or an unknown one where the caller must not see it."""
    return scope.session_for(request.context, request.call(), request.path["session"])


def _refuse(request: HttpRequest, names: tuple[str, ...], goes_with: str) -> None:
    if misplaced := [name for name in names if name in request.query]:
        raise BadValue(f"{misplaced[0]} goes with {goes_with}", next="leave it out")


async def inbox(request: HttpRequest) -> Response:
    if request.media == EVENT_STREAM:
        _refuse(request, _PAGE_ONLY, "a page")
        session = _session(request)
        return sse.event_stream(request, lambda write: _write_notifications(request, write, session))
    _refuse(request, _STREAM_ONLY, f"a stream: Accept: {EVENT_STREAM}")
    lease = object()
    ask = {**request.query, "session": _session(request)}
    if request.is_read_only:
        ask["peek"] = True
    try:
        return json_response(await request.while_connected(request.ask("inbox", ask, taker=lease)))
    finally:
        if request.query.get("take"):
            asyncio.get_running_loop().call_later(_LEASE, request.context.inbox.give_back, lease)


async def _write_notifications(request: HttpRequest, write: Write, session: str) -> None:
    await write(sse.HEARTBEAT)  # the stream is open
    take, window = request.query.get("take", False), request.query.get("window")
    async with aclosing(push.pushed(request.context, session, "sse", take, window)) as batches:
        async for batch in batches:
            written = [sse.event("notification", one, one["id"]) for one in batch]
            await write(b"".join(written) or sse.event("idle", {}))


async def inbox_socket(request: HttpRequest, socket: WebSocket) -> None:
    _refuse(request, _PAGE_ONLY, "a page")
    session = _session(request)
    await socket.accept(text=True)
    await socket.run(request, _send_notifications(request, socket, session), _receive_acks(request, socket, session))


async def _send_notifications(request: HttpRequest, socket: WebSocket, session: str) -> None:
    take, window = request.query.get("take", False), request.query.get("window")
    async with aclosing(push.pushed(request.context, session, "websocket", take, window)) as batches:
        async for batch in batches:
            for one in batch:
                await socket.send_text(light_json.dumps(one))


async def _receive_acks(request: HttpRequest, socket: WebSocket, session: str) -> None:
    while True:
        try:
            message = await socket.receive_text()
            await socket.control({"type": "acked", **await request.ask("ack", _ack_fields(message, session))})
        except ClientGone:
            return
        except HoldfastError as error:
            await socket.control({"type": "error", **error.to_wire()})


def _ack_fields(message: str | None, session: str) -> Message:
    try:
        json_bounds.check_values((message or "").encode(errors="replace"))
        value = light_json.loads(message or "")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or value.keys() != {"ack"}:
        raise BadValue("this message is invalid", next='{"ack": ["note_…"]}')
    return {"ids": value["ack"], "session": session}


class AckOfSession(Ack):
    """Acknowledge notifications of a session: they are never delivered again."""

    op = "ack"
    traits = Traits(
        completes=True, scope=Scope.SESSION, route="POST /sessions/{session}/inbox/ack", http_name="ackNotifications"
    )


ROUTES = [
    operation_route(
        InboxQuery,
        inbox,
        serve_socket=inbox_socket,
        replies={
            200: Success("Notifications, oldest first", {JSON: Inbox.Reply, EVENT_STREAM: {"type": "string"}}),
            101: Success("The WebSocket is open", {}),
        },
        about="A notification is delivered again until it is acknowledged, on one stream once. See docs/inbox.md.",
    ),
    plain_route(AckOfSession),
]
