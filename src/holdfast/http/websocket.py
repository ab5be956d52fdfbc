"""One WebSocket while it is open."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from holdfast import light_json
from holdfast.errors import HoldfastError
from holdfast.http.guard import SUBPROTOCOL
from holdfast.http.request import HttpRequest
from holdfast.http.responses import PROBLEM_JSON, ClientGone, HttpRefusal, problem_bytes, status_of

#: Channels: the first byte of every binary message.
STDIN, STDOUT, STDERR, CONTROL = 0, 1, 2, 3

#: Codes of a closed WebSocket.
RESTARTING = 1012
_FAILED = 1011


class WebSocket:
    def __init__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        self._scope = scope
        self._receive = receive
        self._send_message = send
        self._is_open = False
        self._is_text = False

    async def accept(self, text: bool = False) -> None:
        """With `text`, every message is a text, and there are no channels."""
        self._is_text = text
        await self._receive()  # the request to connect
        offered = self._scope["subprotocols"]
        chosen = SUBPROTOCOL if SUBPROTOCOL in offered else None
        await self._send({"type": "websocket.accept", "subprotocol": chosen})
        self._is_open = True

    async def refuse(self, error: HoldfastError) -> None:
        """Refuse: with a status before it is open, in a control message after."""
        if self._is_open:
            await self.control({"type": "error", **error.to_wire()})
            await self.close(_FAILED)
            return
        headers = [(b"content-type", PROBLEM_JSON.encode())]
        if isinstance(error, HttpRefusal):
            headers += [(name.encode(), value.encode("latin-1", "replace")) for name, value in error.headers]
        start = {"type": "websocket.http.response.start", "status": status_of(error), "headers": headers}
        await self._send(start)
        await self._send({"type": "websocket.http.response.body", "body": problem_bytes(error)})

    async def receive(self) -> tuple[int, bytes]:
        """The next message: its channel and the rest. Raises ClientGone."""
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            raise ClientGone
        data = message.get("bytes")
        if data is None:  # text is for control
            return CONTROL, str(message.get("text") or "").encode()
        return (data[0], bytes(data[1:])) if data else (STDIN, b"")

    async def send(self, channel: int, data: bytes) -> None:
        await self._send({"type": "websocket.send", "bytes": bytes((channel,)) + data})

    async def receive_text(self) -> str | None:
        """The next message; None for one of bytes. Raises ClientGone."""
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            raise ClientGone
        text: str | None = message.get("text")
        return text

    async def receive_any(self) -> str | bytes:
        """The next message. Raises ClientGone."""
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            raise ClientGone
        data: bytes | None = message.get("bytes")
        return str(message.get("text") or "") if data is None else data

    async def send_any(self, data: str | bytes) -> None:
        await self._send({"type": "websocket.send", "text" if isinstance(data, str) else "bytes": data})

    async def send_text(self, text: str) -> None:
        await self._send({"type": "websocket.send", "text": text})

    async def control(self, value: dict[str, Any]) -> None:
        text = light_json.dumps(value)
        await (self.send_text(text) if self._is_text else self.send(CONTROL, text.encode()))

    async def close(self, code: int = 1000) -> None:
        await self._send({"type": "websocket.close", "code": code})

    async def _send(self, message: dict[str, Any]) -> None:
        try:
            await self._send_message(message)
        except OSError as gone:  # uvicorn raises it when the client has disconnected
            raise ClientGone from gone

    async def run(self, request: HttpRequest, *works: Coroutine[Any, Any, None]) -> None:
        """Run these until one of them ends or fails, or the daemon stops."""
        tasks = [asyncio.ensure_future(work) for work in works]
        try:
            await asyncio.wait({*tasks, request.stopping}, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
            await self.close(RESTARTING if request.stopping.done() else 1000)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def until_gone(self) -> None:
        """For a WebSocket on which the client sends nothing: returns when it disconnects."""
        try:
            while True:
                await self.receive_text()
        except ClientGone:
            return
