"""/api/pub: events of other programs, over their bridges. What is no event is ignored and counted, and breaks nothing.

`{"ack": N, "bridge": ID}` says that all of this bridge up to N is on disk: it need not come again.
"""

from __future__ import annotations

import asyncio

from holdfast.errors import Denied
from holdfast.http import open_socket
from holdfast.http.request import Request
from holdfast.http.socket import Socket
from holdfast.http.table import Reply, Route

#: Messages that may be on their way to the disk. A bridge that is faster is not listened to meanwhile.
_MOST_UNWRITTEN = 1000

Written = tuple[dict[str, int], asyncio.Future[None]]


async def pub(request: Request, socket: Socket) -> None:
    if request.call().is_strict:
        raise Denied("a bridge is not bound to a session", next="leave Holdfast-Strict out")
    await socket.accept(text=True)
    unwritten: asyncio.Queue[Written] = asyncio.Queue(_MOST_UNWRITTEN)
    with request.room.relays.connection():
        await open_socket.serve(request, socket, _take(request, socket, unwritten), _acknowledge(socket, unwritten))


async def _take(request: Request, socket: Socket, unwritten: asyncio.Queue[Written]) -> None:
    relays = request.room.relays
    is_first = True
    while True:
        message = await socket.receive_text()
        if message is None:
            relays.ignore()
            continue
        taken, written = relays.take(message)
        if taken.events or taken.marks:
            await unwritten.put((taken.marks, written))
            if is_first:  # a full disk is noticed before there is more to remember for it
                await asyncio.wait({written})
                is_first = False


async def _acknowledge(socket: Socket, unwritten: asyncio.Queue[Written]) -> None:
    """In order, and one for many where they are written together. Ends when the disk is full: the bridge comes back."""
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
    """Shielded: that nobody waits any more does not make it unwritten."""
    await asyncio.shield(written)


async def _send(socket: Socket, marks: dict[str, int]) -> None:
    for bridge, n in marks.items():
        await socket.control({"ack": n, "bridge": bridge})


ROUTES = [
    Route(
        "GET",
        "/api/pub",
        "joinBus",
        "Events of another program, over a WebSocket: texts, each a frame or an array of frames",
        {101: Reply("The WebSocket is open", {})},
        serve_socket=pub,
        about="Frames: see docs/events.md. What is no frame is ignored and counted.",
    ),
]
