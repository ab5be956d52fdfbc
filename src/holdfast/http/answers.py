"""What is sent back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from holdfast.errors import HoldfastError
from holdfast.http.problems import MEDIA, Refusal, problem_bytes, status_of
from holdfast.wire import light_json

Message: TypeAlias = dict[str, Any]
Send: TypeAlias = Callable[[Any], Awaitable[None]]
Write: TypeAlias = Callable[[bytes], Awaitable[None]]
Headers: TypeAlias = Sequence[tuple[str, str]]

#: Nothing here is for a cache, nor for a browser to guess at.
_ALWAYS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]


class Answer:
    """A status and a body that is there."""

    def __init__(self, status: int, body: bytes = b"", media: str = "", headers: Headers = ()) -> None:
        self.status = status
        self.body = body
        self.media = media
        self.headers = headers

    async def send(self, send: Send) -> None:
        headers = encoded(self.media, self.headers)
        if self.status != 204:
            headers.append((b"content-length", b"%d" % len(self.body)))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


class Stream(Answer):
    """A body that comes piece by piece, for as long as `produce` writes."""

    def __init__(self, media: str, produce: Callable[[Write], Awaitable[None]], headers: Headers = ()) -> None:
        super().__init__(200, b"", media, headers)
        self._produce = produce

    async def send(self, send: Send) -> None:
        async def write(data: bytes) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": True})

        headers = encoded(self.media, self.headers)
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await self._produce(write)
        await send({"type": "http.response.body", "body": b""})


def json_answer(value: Message, status: int = 200, headers: Headers = ()) -> Answer:
    return Answer(status, light_json.dumps(value).encode(), "application/json", headers)


def nothing() -> Answer:
    return Answer(204)


def refusal(error: HoldfastError) -> Answer:
    headers = error.headers if isinstance(error, Refusal) else ()
    return Answer(status_of(error), problem_bytes(error), MEDIA, headers)


def encoded(media: str, headers: Headers) -> list[tuple[bytes, bytes]]:
    encoded = list(_ALWAYS)
    if media:
        encoded.append((b"content-type", media.encode()))
    encoded += [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers]
    return encoded
