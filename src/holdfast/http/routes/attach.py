"""/api/v1/processes/{id}/attach: a process's output and input on one WebSocket.

Messages are binary; the first byte is a channel. To the process: 0 is input, 3 is control: `{"type": "resize", "cols",
"rows"}`, `{"type": "eof"}`, `{"type": "signal", "signal"}`, `{"type": "ack", "bytes"}`. From it: 1 is output, 2 is
stderr of a process with two streams, 3 is control: `hello`, `gap`, `exit`, `error`.

A client that acknowledges output is sent no more than it can show: the rest waits in the log.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import TYPE_CHECKING

from holdfast import light_json
from holdfast.daemon.core.context import Message
from holdfast.errors import BadValue, Denied, NotApproved, NotNow, StdinFull, Unreachable
from holdfast.http.request import HttpRequest
from holdfast.http.responses import ClientGone
from holdfast.http.routes.log import discard
from holdfast.http.routes.processes import with_signal
from holdfast.http.routing import Success, operation_route
from holdfast.http.websocket import CONTROL, STDERR, STDIN, STDOUT, WebSocket
from holdfast.model.process import HeldProcess
from holdfast.ops.declare import Operation, Traits, field
from holdfast.wire import json_bounds

if TYPE_CHECKING:
    from holdfast.ops.kinds import ProcessRef, Size

_CHANNELS = {"out": STDOUT, "err": STDERR}
#: The pause before writing again to a process whose input is full.
_RETRY_INTERVAL = 0.02
_PIECE = 64 << 10
#: Output that may be on its way to a client that acknowledges.
WINDOW = 256 << 10
#: Input that may wait for the process: then no more messages are read, and so no more acknowledgements.
_MOST_WAITING = 1 << 20


class FlowControl:
    """How much was sent and acknowledged, in bytes of output since `hello`."""

    def __init__(self) -> None:
        self._sent = 0
        #: None until the client acknowledges for the first time: one that never does gets everything.
        self._acked: int | None = None
        self._changed = asyncio.Event()

    def sent(self, size: int) -> None:
        self._sent += size

    def acknowledge(self, total: object) -> None:
        """The client has shown this many bytes in sum. Raises BadValue."""
        if not isinstance(total, int) or isinstance(total, bool) or not 0 <= total <= self._sent:
            raise BadValue(
                f"ack needs the bytes that were shown, 0 to {self._sent}", next="count the output since hello"
            )
        self._acked = max(self._acked or 0, total)
        self._changed.set()

    async def permit(self, size: int) -> None:
        """Wait until this many bytes may be sent."""
        while self._acked is not None and self._sent - self._acked + size > WINDOW:
            self._changed.clear()
            await self._changed.wait()


class InputQueue:
    """Messages of the client that wait for the process, in order."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()
        self._size = 0
        self._has_space = asyncio.Event()
        self._has_space.set()

    async def put(self, channel: int, data: bytes) -> None:
        """Waits while too much is waiting."""
        await self._has_space.wait()
        self._size += len(data) + 1
        self._messages.put_nowait((channel, data))
        if self._size > _MOST_WAITING:
            self._has_space.clear()

    async def get(self) -> tuple[int, bytes]:
        channel, data = await self._messages.get()
        self._size -= len(data) + 1
        if self._size <= _MOST_WAITING:
            self._has_space.set()
        return channel, data


async def attach(request: HttpRequest, socket: WebSocket) -> None:
    """Until the process has ended and its output was sent, or the client disconnects."""
    process = request.find()
    begin = {
        stream: await _begin_offset(request, process, stream, request.query.get("from"))
        for stream in process.meta.streams
    }
    await socket.accept()
    await socket.control({"type": "hello", "process": request.context.show(process), "offsets": begin})
    flow, waiting = FlowControl(), InputQueue()
    output = asyncio.ensure_future(_output(request, socket, process, begin, flow))
    messages = asyncio.ensure_future(_receive(socket, flow, waiting))
    inputs = asyncio.ensure_future(_input(request, socket, process, waiting))
    terminal = asyncio.ensure_future(_terminal(request, process, begin["out"]))
    stopping = request.stopping
    try:
        await asyncio.wait({output, messages, inputs, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if stopping.done():
            raise Unreachable("the daemon is stopping", next="attach again")
        for task in (messages, inputs, output):
            if task.done():
                task.result()
        await socket.close()
    finally:
        for task in (output, messages, inputs, terminal):
            task.cancel()
        await asyncio.wait({output, messages, inputs, terminal})


async def _terminal(request: HttpRequest, process: HeldProcess, offset: int) -> None:
    """While a terminal is attached, it answers the queries of the program, in place of the daemon."""
    if process.meta.pty and not request.is_read_only:
        await request.ask("attached", {"process": process.id, "from": offset})


async def _begin_offset(request: HttpRequest, process: HeldProcess, stream: str, offset: int | None) -> int:
    """Where to begin: as given, or with the output that comes next."""
    ask = {"process": process.id, "stream": stream, "from": offset or 0, "bytes": 0}
    reply = await request.ask("logs", ask, discard)
    return int(reply["total"] if offset is None else reply["start"])


async def _output(
    request: HttpRequest, socket: WebSocket, process: HeldProcess, begin: dict[str, int], flow: FlowControl
) -> None:
    replies = await asyncio.gather(
        *(_stream(request, socket, process, stream, offset, flow) for stream, offset in begin.items())
    )
    ended = request.context.registry.get(process.id) or process
    offsets = {stream: reply["end"] for stream, reply in zip(begin, replies, strict=True)}
    await socket.control({"type": "exit", "process": request.context.show(ended), "offsets": offsets})


async def _stream(
    request: HttpRequest, socket: WebSocket, process: HeldProcess, stream: str, offset: int, flow: FlowControl
) -> Message:
    #: Where the next byte to be sent begins.
    reach = offset

    async def send(stream: str, offset: int, data: bytes) -> None:
        nonlocal reach
        if offset > reach:
            await socket.control({"type": "gap", "stream": stream, "from": reach, "to": offset})
            reach = offset
        for at in range(0, len(data), _PIECE):
            piece = data[at : at + _PIECE]
            await flow.permit(len(piece))
            flow.sent(len(piece))
            await socket.send(_CHANNELS[stream], piece)
            reach += len(piece)

    ask = {"process": process.id, "stream": stream, "from": offset, "follow": True, "until": "exit"}
    return await request.ask("logs", ask, send)


async def _receive(socket: WebSocket, flow: FlowControl, waiting: InputQueue) -> None:
    """Read the client's messages: what it acknowledges counts at once, everything else in turn."""
    while True:
        channel, data = await socket.receive()
        control = _read_control(data) if channel == CONTROL else None
        if control is None or control.get("type") != "ack":
            await waiting.put(channel, data)
            continue
        try:
            flow.acknowledge(control.get("bytes"))
        except BadValue as error:
            await socket.control({"type": "error", **error.to_wire()})


async def _input(request: HttpRequest, socket: WebSocket, process: HeldProcess, waiting: InputQueue) -> None:
    """Handle the client's messages one after the other."""
    while True:
        channel, data = await waiting.get()
        try:
            if channel == STDIN:
                await _write(request, process, data)
            elif channel == CONTROL:
                await _control(request, process, data)
            else:
                raise BadValue(f"channel {channel} is not one to a process", next="0 is input, 3 is control")
        except ClientGone:
            raise
        except (BadValue, NotNow, NotApproved, Denied) as error:
            await socket.control({"type": "error", **error.to_wire()})


async def _write(request: HttpRequest, process: HeldProcess, data: bytes) -> None:
    for at in range(0, len(data), _PIECE):
        ask = {"process": process.id, "data": b64encode(data[at : at + _PIECE]).decode()}
        while True:
            try:
                await request.ask("send", dict(ask))
                break
            except StdinFull:
                await asyncio.sleep(_RETRY_INTERVAL)


async def _control(request: HttpRequest, process: HeldProcess, data: bytes) -> None:
    control = _read_control(data)
    ask = _operation(process, control.pop("type", None), control) if control is not None else None
    if ask is None:
        raise BadValue("this control message is invalid", next="resize, eof, signal or ack")
    await request.ask(*ask)


def _read_control(data: bytes) -> Message | None:
    try:
        json_bounds.check_values(data)
        control = light_json.loads(data.decode())
    except (ValueError, RecursionError):
        return None
    return control if isinstance(control, dict) else None


def _operation(process: HeldProcess, kind: object, control: Message) -> tuple[str, Message] | None:
    if kind == "resize" and control.keys() <= {"cols", "rows"}:
        return "resize", {**control, "process": process.id}
    if kind == "eof" and not control:
        return "send", {"process": process.id, "eof": True}
    if kind == "signal" and control.get("signal") is not None and control.keys() == {"signal"}:
        return "kill", {**with_signal(control), "processes": [process.id]}
    return None


class Attach(Operation):
    """Output and input on one WebSocket: binary messages whose first byte is a channel."""

    process: ProcessRef = field(help="An id, a name, or a unique prefix of either (of an id 4 hex digits or more).")
    from_: Size | None = field(
        None, help="Begin at this byte of the output; with the output that comes next unless given."
    )

    traits = Traits(reads=True, route="GET /processes/{process}/attach", http_name="attach")


ROUTES = [
    operation_route(
        Attach,
        None,
        serve_socket=attach,
        replies={101: Success("The WebSocket is open", {})},
        about="Channels: 0 input, 1 output, 2 stderr, 3 control (JSON). See docs/http.md.",
    )
]
