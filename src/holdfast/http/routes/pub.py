"""/api/pub: events of other programs, over their bridges. Frames that are no events are ignored and counted.

`{"ack": N, "bridge": ID}` confirms that all events of this bridge up to N are on disk.

/api/events?channel=NAME: the texts that come over the bridges of that channel, as they are, from now on.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from holdfast.errors import BadValue, Denied
from holdfast.http.request import HttpRequest
from holdfast.http.routing import Success, operation_route
from holdfast.http.websocket import WebSocket
from holdfast.ops.declare import Operation, Traits, field

if TYPE_CHECKING:
    from holdfast.ops.kinds import Text

#: Messages that may be on their way to the disk. From a bridge that is faster, no more is read meanwhile.
_MOST_UNWRITTEN = 1000
_CHANNEL = r"^[A-Za-z0-9._-]{1,128}$"


def _check_channel(name: str) -> None:
    if re.fullmatch(_CHANNEL, name) is None:
        raise BadValue("a channel has letters, digits, dots, dashes and underscores", next="choose another name")


Written = tuple[dict[str, int], asyncio.Future[None]]


async def pub(request: HttpRequest, socket: WebSocket) -> None:
    if request.call().is_strict:
        raise Denied("a bridge is not bound to a session", next="leave Holdfast-Strict out")
    await socket.accept(text=True)
    unwritten: asyncio.Queue[Written] = asyncio.Queue(_MOST_UNWRITTEN)
    with request.context.bridges.connection():
        await socket.run(request, _take(request, socket, unwritten), _acknowledge(socket, unwritten))


async def channel_events(request: HttpRequest, socket: WebSocket) -> None:
    if request.call().is_strict:
        raise Denied("a channel is not bound to a session", next="leave Holdfast-Strict out")
    ask = ChannelEvents.read(request.query)
    with request.context.bridges.channel(ask.channel) as texts:
        await socket.accept(text=True)
        await socket.run(request, _pass_on(socket, texts), socket.until_gone())


async def _pass_on(socket: WebSocket, texts: asyncio.Queue[str | None]) -> None:
    while (text := await texts.get()) is not None:
        await socket.send_text(text)


async def _take(request: HttpRequest, socket: WebSocket, unwritten: asyncio.Queue[Written]) -> None:
    bridges, channel = request.context.bridges, request.query.get("channel")
    is_first = True
    while True:
        message = await socket.receive_text()
        if message is None:
            bridges.ignore()
            continue
        if channel is not None:
            bridges.send(channel, message)
        taken, written = bridges.take(message)
        if taken.events or taken.marks:
            await unwritten.put((taken.marks, written))
            if is_first:  # a full disk is noticed before more is held in memory
                await asyncio.wait({written})
                is_first = False


async def _acknowledge(socket: WebSocket, unwritten: asyncio.Queue[Written]) -> None:
    """In order, one confirmation for events written together. Ends when the disk is full: the bridge connects again."""
    while True:
        marks, written = await unwritten.get()
        acknowledged = dict(marks)
        await _on_disk(written)
        while not unwritten.empty():
            more, written = unwritten.get_nowait()
            if not written.done():
                await _send(socket, acknowledged)
                acknowledged = {}
                await _on_disk(written)
            acknowledged |= more
        await _send(socket, acknowledged)


async def _on_disk(written: asyncio.Future[None]) -> None:
    """Shielded: the write goes on when the connection ends."""
    await asyncio.shield(written)


async def _send(socket: WebSocket, marks: dict[str, int]) -> None:
    for bridge, n in marks.items():
        await socket.control({"ack": n, "bridge": bridge})


class Pub(Operation):
    """Events of another program, over a WebSocket: texts, each a frame or an array of frames."""

    token: Text | None = field(None, longest=256, help="The token for publishing, where it cannot be in a header.")
    channel: Text | None = field(
        None, pattern=_CHANNEL, rule=_check_channel, help="Who reads /api/events of this channel gets the texts, too."
    )

    traits = Traits(route="GET /pub", http_name="joinBus")


class ChannelEvents(Operation):
    """The texts that come over the bridges of a channel, as they are."""

    channel: Text = field(pattern=_CHANNEL, rule=_check_channel, help="The channel that the bridges name.")

    traits = Traits(reads=True, route="GET /events", http_name="readChannel")


_OPEN = {101: Success("The WebSocket is open", {})}
ROUTES = [
    operation_route(
        Pub,
        None,
        path="/api/pub",
        replies=_OPEN,
        serve_socket=pub,
        about="Frames: see docs/events.md. Invalid ones are ignored and counted.",
    ),
    operation_route(
        ChannelEvents,
        None,
        path="/api/events",
        replies=_OPEN,
        serve_socket=channel_events,
        about="A reader that is too slow is cut off. /api/v1/events has all events, and loses none.",
    ),
]
