"""Server-sent events.

The id of an event of output is the offset where the next one begins, so that `Last-Event-ID` resumes exactly there. The
id of the last event says that there is nothing more to come back for.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, Coroutine
from typing import Any

from holdfast import light_json
from holdfast.client.results.page import line_end, text_of
from holdfast.errors import BadValue
from holdfast.http.request import HttpRequest
from holdfast.http.responses import StreamedResponse, Write
from holdfast.http.routing import EVENT_STREAM

#: A comment. It is written at intervals, so that a client that has disconnected is noticed.
HEARTBEAT = b": \n\n"
_HEARTBEAT_INTERVAL = 15.0

_END = ".end"
#: A line that is not complete is held back, because it may still change. A longer one is sent in pieces.
_LONGEST_HELD = 64 << 10


def event_stream(request: HttpRequest, produce: Callable[[Write], Coroutine[Any, Any, None]]) -> StreamedResponse:
    """A stream of what `produce` writes, with heartbeats, for as long as the client is connected."""

    async def stream(write: Write) -> None:
        if request.method == "HEAD":
            return
        heartbeat = asyncio.ensure_future(_heartbeat(write))
        try:
            await request.while_connected(produce(write))
        finally:
            heartbeat.cancel()

    return StreamedResponse(stream, EVENT_STREAM)


async def _heartbeat(write: Write) -> None:
    while True:
        await asyncio.sleep(_HEARTBEAT_INTERVAL)
        await write(HEARTBEAT)


def event(kind: str, value: dict[str, Any], id: str | None = None) -> bytes:
    """JSON has no line ends, so an event has one line of data."""
    head = f"id: {id}\n" if id is not None else ""
    return f"{head}event: {kind}\ndata: {light_json.dumps(value)}\n\n".encode()


def end_event(offset: int, value: dict[str, Any]) -> bytes:
    return event("end", value, f"{offset}{_END}")


def message(text: str, id: int | None) -> bytes:
    """An event of the type that browsers listen to by default; `text` is one line."""
    head = f"id: {id}\n" if id is not None else ""
    return f"{head}event: message\ndata: {text}\n\n".encode()


def read_last_id(text: str) -> int | None:
    """Where to go on; None when the client has had the end. Raises BadValue."""
    if text.endswith(_END):
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise BadValue("Last-Event-ID must be the id of an event", next="leave it out to begin at the beginning")
    return int(text)


class OutputEvents:
    """Bytes in, events out. Text comes in whole lines, without escape sequences."""

    def __init__(self, stream: str, offset: int, raw: bool) -> None:
        #: Where the next event begins.
        self.offset = offset
        #: Where the next bytes are expected.
        self.reach = offset
        self._stream = stream
        self._raw = raw
        self._held = b""

    def feed(self, offset: int, data: bytes) -> bytes:
        """The events that these bytes make; none when they only begin a line."""
        events = b""
        if offset != self.reach:  # the bytes between were dropped
            events = self.flush()
            self.offset = offset
        self.reach = offset + len(data)
        self._held += data
        return events + self._released(len(self._held) if self._raw else self._complete())

    def flush(self) -> bytes:
        """An event with what was held back."""
        return self._released(len(self._held))

    def _complete(self) -> int:
        done = self._held.rfind(b"\n") + 1
        return done if done or len(self._held) < _LONGEST_HELD else line_end(self._held)

    def _released(self, size: int) -> bytes:
        if not size:
            return b""
        data, self._held = self._held[:size], self._held[size:]
        begin, self.offset = self.offset, self.offset + size
        shown = {"data": b64encode(data).decode()} if self._raw else {"text": text_of(data)}
        value = {"stream": self._stream, "offset": begin, "next_offset": self.offset, **shown}
        return event("output", value, str(self.offset))
