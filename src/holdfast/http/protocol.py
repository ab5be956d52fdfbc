"""uvicorn's HTTP protocol, with bounds on what a request may cost before anybody has looked at it."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from holdfast.http.problems import MEDIA, Refusal, problem_bytes

_MOST_HEAD = 64 << 10
#: From the first byte of a request to the end of its headers.
_HEAD_TIME = 10.0


class _TooLong(Exception):
    pass


class BoundedProtocol(HttpToolsProtocol):
    """A head that is too long (431) or takes too long is not waited for."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._head_size = 0
        self._head_timer: asyncio.TimerHandle | None = None
        #: Of the head that is being read: its target and fields, however they came.
        self._head_read = 0

    def data_received(self, data: bytes) -> None:
        if self._is_between():
            self._head_size += len(data)
            if self._head_timer is None:
                self._head_timer = self.loop.call_later(_HEAD_TIME, self._too_slow)
        super().data_received(data)
        if self._head_size > _MOST_HEAD and self._is_between() and not self.transport.is_closing():
            self._refuse(431, "the headers are too long")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_reading_head = True
        self._head_read = 0

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(b": ") + len(value) + len(b"\r\n"))
        super().on_header(name, value)

    def _count(self, size: int) -> None:
        """Ends the parsing of a head that is too long, which came in one piece."""
        self._head_read += size
        if self._head_read > _MOST_HEAD:
            raise _TooLong

    def on_headers_complete(self) -> None:
        self._is_reading_head = False
        self._head_size = 0
        self._still()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._still()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        if self._head_read > _MOST_HEAD:
            self._refuse(431, "the headers are too long")
        else:
            self._refuse(400, "this is no HTTP request")

    _is_reading_head = True

    def _is_between(self) -> bool:
        """Whether what comes belongs to a head, or to what should become one."""
        return self._is_reading_head or (self._is_idle() and not self.pipeline)

    def _is_idle(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def _too_slow(self) -> None:
        self._head_timer = None
        self._refuse(408, "the headers took too long")

    def _still(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, status: int, why: str) -> None:
        self._still()
        if self.transport.is_closing():
            return
        if self._is_idle():
            body = problem_bytes(Refusal(status, "bad_value", why, next="see docs/http.md"))
            head = b"content-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % (MEDIA.encode(), len(body))
            self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()
