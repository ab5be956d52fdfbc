"""What is sent back: responses, and errors as application/problem+json with the codes of `errors`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from holdfast import light_json
from holdfast.errors import HoldfastError, Unsupported

Send: TypeAlias = Callable[[Any], Awaitable[None]]
Write: TypeAlias = Callable[[bytes], Awaitable[None]]
Headers: TypeAlias = Sequence[tuple[str, str]]

PROBLEM_JSON = "application/problem+json"
#: Nothing here may be cached, used by a page of another origin, or interpreted by a browser as another type or as a
#: page. Headers of a response with the same name take their place.
_ALWAYS = {
    b"cache-control": b"no-store",
    b"x-content-type-options": b"nosniff",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"cross-origin-resource-policy": b"same-origin",
    b"referrer-policy": b"no-referrer",
}

#: The status of each error code. A code that is not here is a fault of the daemon.
STATUS = {
    "bad_value": 400,
    **dict.fromkeys(
        ("denied", "command_denied", "no_approver", "approval_required", "not_approved", "no_password"), 403
    ),
    "not_found": 404,
    **dict.fromkeys(("ambiguous", "not_now", "stdin_closed", "stdin_full", "no_terminal"), 409),
    **dict.fromkeys(("already_running", "limit_reached"), 409),
    **dict.fromkeys(("failed_start", "not_executable", "command_not_found", "unsupported"), 422),
    "unreachable": 503,
    "disk_full": 507,
}
#: Titles of codes whose words do not say enough.
_TITLES = {"failed_start": "Start failed", "stdin_closed": "Input closed", "stdin_full": "Input full"}


class HttpRefusal(HoldfastError):
    """A request that is refused because of its HTTP, with the status for that."""

    def __init__(
        self, status: int, code: str, message: str, *, next: str, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(message, next=next)
        self.status = status
        self.code = code
        self.headers = headers


class ClientGone(Unsupported):
    """The client disconnected: no response is needed."""

    def __init__(self) -> None:
        super().__init__("the client disconnected")


def status_of(error: HoldfastError) -> int:
    return error.status if isinstance(error, HttpRefusal) else STATUS.get(error.code, 500)


def problem(error: HoldfastError) -> dict[str, object]:
    more = {} if error.data is None else {"data": error.data}
    return {
        "type": "about:blank",
        "title": _TITLES.get(error.code, error.code.replace("_", " ").capitalize()),
        "status": status_of(error),
        "code": error.code,
        "detail": error.message,
        "next": error.next,
        **more,
    }


def problem_bytes(error: HoldfastError) -> bytes:
    return light_json.dumps(problem(error)).encode()


class Response:
    """A status and a body that is complete."""

    def __init__(self, status: int, body: bytes = b"", media: str = "", headers: Headers = ()) -> None:
        self.status = status
        self.body = body
        self.media = media
        self.headers = headers

    async def send(self, send: Send) -> None:
        headers = encoded_headers(self.media, self.headers)
        if self.status != 204:
            headers.append((b"content-length", b"%d" % len(self.body)))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


class StreamedResponse(Response):
    """A body that comes piece by piece, for as long as `produce` writes."""

    def __init__(self, produce: Callable[[Write], Awaitable[None]], media: str, headers: Headers = ()) -> None:
        super().__init__(200, b"", media, headers)
        self._produce = produce

    async def send(self, send: Send) -> None:
        async def write(data: bytes) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": True})

        headers = encoded_headers(self.media, self.headers)
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await self._produce(write)
        await send({"type": "http.response.body", "body": b""})


def json_response(value: dict[str, Any], status: int = 200, headers: Headers = ()) -> Response:
    return Response(status, light_json.dumps(value).encode(), "application/json", headers)


def problem_response(error: HoldfastError) -> Response:
    headers = error.headers if isinstance(error, HttpRefusal) else ()
    return Response(status_of(error), problem_bytes(error), PROBLEM_JSON, headers)


def encoded_headers(media: str, headers: Headers) -> list[tuple[bytes, bytes]]:
    given = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers]
    if media:
        given.append((b"content-type", media.encode()))
    names = {name for name, _ in given}
    return [*((name, value) for name, value in _ALWAYS.items() if name not in names), *given]
