"""One WebSocket while it is open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.http.guard import SUBPROTOCOL
from holdfast.http.problems import MEDIA, Gone, Refusal, problem_bytes, status_of
from holdfast.wire import light_json

#: The first byte of every binary message says what the rest is.
STDIN, STDOUT, STDERR, CONTROL = 0, 1, 2, 3

_GOING_AWAY = 1001
RESTARTING = 1012
_FAILED = 1011


class Socket:
    def __init__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        self._scope = scope
        self._receive = receive
        self._send_message = send
        self._is_open = False
        self._is_text = False

    async def accept(self, text: bool = False) -> None:
        """With `text` there are no channels: every message is a text."""
        self._is_text = text
        await self._receive()  # the request to connect
        offered = self._scope["subprotocols"]
        chosen = SUBPROTOCOL if SUBPROTOCOL in offered else None
        await self._send({"type": "websocket.accept", "subprotocol": chosen})
        self._is_open = True

    async def refuse(self, error: HoldfastError) -> None:
        """Say no: with a status before it is open, in a control message after."""
        if self._is_open:
            await self.control({"type": "error", **error.to_wire()})
            await self.close(_FAILED)
            return
        headers = [(b"content-type", MEDIA.encode())]
        if isinstance(error, Refusal):
            headers += [(name.encode(), value.encode("latin-1", "replace")) for name, value in error.headers]
        start = {"type": "websocket.http.response.start", "status": status_of(error), "headers": headers}
        await self._send(start)
        await self._send({"type": "websocket.http.response.body", "body": problem_bytes(error)})

    async def receive(self) -> tuple[int, bytes]:
        """The next message: its channel and the rest. Raises Gone."""
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            raise Gone("the client went away")
        data = message.get("bytes")
        if data is None:  # text is for control
            return CONTROL, str(message.get("text") or "").encode()
        return (data[0], bytes(data[1:])) if data else (STDIN, b"")

    async def send(self, channel: int, data: bytes) -> None:
        await self._send({"type": "websocket.send", "bytes": bytes((channel,)) + data})

    async def receive_text(self) -> str | None:
        """The next message; None for one of bytes. Raises Gone."""
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            raise Gone("the client went away")
        text: str | None = message.get("text")
        return text

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
        except OSError as gone:  # what uvicorn raises when the client has gone
            raise Gone("the client went away") from gone
