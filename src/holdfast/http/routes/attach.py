"""/api/v1/processes/{id}/attach: a process's output and input on one WebSocket.

Messages are binary; the first byte is a channel. To the process: 0 is input, 3 is control: `{"type": "resize", "cols",
"rows"}`, `{"type": "eof"}`, `{"type": "signal", "signal"}`. From it: 1 is output, 2 is stderr of a process with two
streams, 3 is control: `hello`, `gap`, `exit`, `error`.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode

from holdfast.daemon.room import Message
from holdfast.errors import BadValue, NotApproved, NotNow, StdinFull, Unreachable
from holdfast.http.following import follow
from holdfast.http.problems import Gone
from holdfast.http.request import Request
from holdfast.http.routes.steering import with_signal
from holdfast.http.schemas import integer
from holdfast.http.socket import CONTROL, STDERR, STDIN, STDOUT, Socket
from holdfast.http.table import Parameter, Reply, Route
from holdfast.model.process import Process
from holdfast.wire import light_json

_CHANNELS = {"out": STDOUT, "err": STDERR}
#: How long to wait for a process to read some of its input before writing more.
_PAUSE = 0.02
_PIECE = 64 << 10


async def attach(request: Request, socket: Socket) -> None:
    """Until the process has ended and its output was sent, or the client goes."""
    process = request.find(request.id)
    begin = {
        stream: await _place(request, process, stream, request.query.get("from")) for stream in process.meta.streams
    }
    await socket.accept()
    await socket.control({"type": "hello", "process": request.room.show(process), "offsets": begin})
    output = asyncio.ensure_future(_output(request, socket, process, begin))
    inputs = asyncio.ensure_future(_input(request, socket, process))
    terminal = asyncio.ensure_future(_terminal(request, process, begin["out"]))
    stopping = request.stopping
    try:
        await asyncio.wait({output, inputs, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if stopping.done():
            raise Unreachable("the daemon is stopping", next="attach again")
        for task in (inputs, output):
            if task.done():
                task.result()
        await socket.close()
    finally:
        for task in (output, inputs, terminal):
            task.cancel()
        await asyncio.wait({output, inputs, terminal})


async def _terminal(request: Request, process: Process, offset: int) -> None:
    """While a terminal is attached it is asked what a program asks of its terminal, where the daemon knows of that."""
    if process.meta.pty:
        await request.ask("attached", {"process": process.id, "from": offset})


async def _place(request: Request, process: Process, stream: str, offset: int | None) -> int:
    """Where to begin: as asked for, or with what comes from now on."""
    ask = {"process": process.id, "stream": stream, "from": offset or 0, "bytes": 0}
    answer = await request.ask("logs", ask, _nowhere)
    return int(answer["total"] if offset is None else answer["start"])


async def _output(request: Request, socket: Socket, process: Process, begin: dict[str, int]) -> None:
    answers = await asyncio.gather(
        *(_stream(request, socket, process, stream, offset) for stream, offset in begin.items())
    )
    ended = request.room.registry.get(process.id) or process
    offsets = {stream: answer["end"] for stream, answer in zip(begin, answers, strict=True)}
    await socket.control({"type": "exit", "process": request.room.show(ended), "offsets": offsets})


async def _stream(request: Request, socket: Socket, process: Process, stream: str, offset: int) -> Message:
    reach = offset

    async def send(stream: str, offset: int, data: bytes) -> None:
        nonlocal reach
        if offset != reach:
            await socket.control({"type": "gap", "stream": stream, "from": reach, "to": offset})
        reach = offset + len(data)
        await socket.send(_CHANNELS[stream], data)

    ask = {"process": process.id, "stream": stream, "from": offset, "follow": True}
    return await follow(request, ask, send, to_exit=True)


async def _input(request: Request, socket: Socket, process: Process) -> None:
    """Take what the client sends, one message after the other; for as long as one waits, no more is read."""
    while True:
        channel, data = await socket.receive()
        try:
            if channel == STDIN:
                await _write(request, process, data)
            elif channel == CONTROL:
                await _control(request, process, data)
            else:
                raise BadValue(f"channel {channel} does not lead to a process", next="0 is input, 3 is control")
        except Gone:
            raise
        except (BadValue, NotNow, NotApproved) as error:
            await socket.control({"type": "error", **error.to_wire()})


async def _write(request: Request, process: Process, data: bytes) -> None:
    for at in range(0, len(data), _PIECE):
        ask = {"process": process.id, "data": b64encode(data[at : at + _PIECE]).decode()}
        while True:
            try:
                await request.ask("send", dict(ask))
                break
            except StdinFull:
                await asyncio.sleep(_PAUSE)


async def _control(request: Request, process: Process, data: bytes) -> None:
    try:
        said = light_json.loads(data.decode())
    except (ValueError, RecursionError):
        said = None
    kind = said.pop("type", None) if isinstance(said, dict) else None
    ask = _ask(process, kind, said) if isinstance(said, dict) else None
    if ask is None:
        raise BadValue("this control message is not understood", next="resize, eof or signal")
    await request.ask(*ask)


def _ask(process: Process, kind: object, said: Message) -> tuple[str, Message] | None:
    if kind == "resize" and said.keys() <= {"cols", "rows"}:
        return "resize", {**said, "process": process.id}
    if kind == "eof" and not said:
        return "send", {"process": process.id, "eof": True}
    if kind == "signal" and said.get("signal") is not None and said.keys() == {"signal"}:
        return "kill", {**with_signal(said), "processes": [process.id]}
    return None


async def _nowhere(stream: str, offset: int, data: bytes) -> None:
    return


ROUTES = [
    Route(
        "GET",
        "/api/v1/processes/{id}/attach",
        "attach",
        "Output and input on one WebSocket: binary messages whose first byte is a channel",
        {101: Reply("The WebSocket is open", {})},
        serve_socket=attach,
        query=(
            Parameter(
                "from", integer(), "Begin at this byte of the output; with what comes next unless said otherwise."
            ),
        ),
        about="Channels: 0 input, 1 output, 2 stderr, 3 control (JSON). See docs/http.md.",
    ),
]
