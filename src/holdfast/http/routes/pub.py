"""/api/pub: events of other programs, over their bridges. Frames that are no events are ignored and counted.

`{"ack": N, "bridge": ID}` confirms that all events of this bridge up to N are on disk.
"""

from __future__ import annotations

import asyncio

from holdfast.errors import Denied
from holdfast.http.request import HttpRequest
from holdfast.http.routing import Route, Success
from holdfast.http.websocket import WebSocket

#: Messages that may be on their way to the disk. From a bridge that is faster, no more is read meanwhile.
_MOST_UNWRITTEN = 1000

Written = tuple[dict[str, int], asyncio.Future[None]]


async def pub(request: HttpRequest, socket: WebSocket) -> None:
    if request.call().is_strict:
        raise Denied("a bridge is not bound to a session", next="leave Holdfast-Strict out")
    await socket.accept(text=True)
    unwritten: asyncio.Queue[Written] = asyncio.Queue(_MOST_UNWRITTEN)
    with request.context.bridges.connection():
        await socket.run(request, _take(request, socket, unwritten), _acknowledge(socket, unwritten))


async def _take(request: HttpRequest, socket: WebSocket, unwritten: asyncio.Queue[Written]) -> None:
    bridges = request.context.bridges
    is_first = True
    while True:
        message = await socket.receive_text()
        if message is None:
            bridges.ignore()
            continue
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


ROUTES = [
    Route(
        "GET",
        "/api/pub",
        "joinBus",
        "Events of another program, over a WebSocket: texts, each a frame or an array of frames",
        {101: Success("The WebSocket is open", {})},
        serve_socket=pub,
        about="Frames: see docs/events.md. Invalid ones are ignored and counted.",
    ),
]
