"""One question over HTTP: the bytes to send, and the answers in the bytes that come back. No I/O."""

from __future__ import annotations

import os
from base64 import b64decode

from holdfast.client.conversation import Done, Failed, Output, refusal
from holdfast.client.http_parser import EventParser, NoHttp, ResponseParser
from holdfast.client.http_words import EVENTS, accepted, answer_value, request_words
from holdfast.client.link import LinkCut
from holdfast.errors import BadValue, HoldfastError, from_wire
from holdfast.model.addresses import is_loopback
from holdfast.wire import light_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.conversation import Answer
    from holdfast.paths import Paths
    from holdfast.wire.frames import Message

_NEXT = "http://127.0.0.1:PORT, as `holdfast daemon http` tells it"


class Place:
    """Where a daemon serves HTTP, and the token that lets one in."""

    __slots__ = ("host", "port", "token")

    def __init__(self, host: str, port: int, token: str | None) -> None:
        self.host = host
        self.port = port
        self.token = token

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def find_place(url: str, token: str | None, paths: Paths) -> Place:
    """The place that a URL names. Without a token, that of HOLDFAST_TOKEN or of the instance; the latter is for this
    machine alone. Raises BadValue.
    """
    scheme, _, rest = url.partition("://")
    authority = rest.rstrip("/")
    host, colon, port = authority.rpartition(":")
    if scheme != "http" or not colon or not (port.isascii() and port.isdigit()) or "/" in host or "@" in host:
        raise BadValue(f"{url[:80]!r} is no place of a daemon", next=_NEXT)
    host = host.removeprefix("[").removesuffix("]")
    token = token or os.environ.get("HOLDFAST_TOKEN")
    if token is None and is_loopback(host):
        token = _own_token(paths)
    if token is not None and not (token.isascii() and token.isprintable()):
        raise BadValue("the token holds characters that no token has", next="cat $HOLDFAST_HOME/token")
    return Place(host, int(port), token)


def _own_token(paths: Paths) -> str | None:
    try:
        with open(paths.token, encoding="ascii", errors="replace") as file:
            return file.read(1024).strip() or None
    except OSError:
        return None


class Exchange:
    """`request` is to be sent; `feed` gives the answers. Raises BadValue for what cannot be sent."""

    def __init__(
        self, rid: int, op: str, arguments: Message, place: Place, session: str | None, strict: bool = False
    ) -> None:
        self.rid = rid
        self.request = _request(op, arguments, place, session, strict)
        self.is_answered = False
        self._op = op
        self._response = ResponseParser()
        self._events = EventParser()
        self._body: list[bytes] = []
        #: Where a stream of events stands.
        self._place = 0

    @property
    def keeps_alive(self) -> bool:
        return self._response.keeps_alive

    @property
    def is_over(self) -> bool:
        return self._response.is_over

    def feed(self, data: bytes) -> list[Answer]:
        """Raises LinkCut when the peer talks nonsense, is going, or ended before it had answered."""
        try:
            pieces = self._response.feed(data)
            answers = self._understand(pieces)
        except (NoHttp, ValueError, KeyError, TypeError) as broken:
            raise LinkCut(f"the link to the daemon was cut: {broken}") from broken
        if self.is_over and not self.is_answered:
            raise LinkCut("the link to the daemon was cut: the stream ended early")
        return answers

    def _understand(self, pieces: list[bytes]) -> list[Answer]:
        response = self._response
        if response.status == 200 and response.headers.get("content-type") == EVENTS:
            events = [event for piece in pieces for event in self._events.feed(piece)]
            return [self._event(kind, light_json.loads(data)) for kind, data in events]
        self._body += pieces
        if not response.is_over:
            return []
        self.is_answered = True
        value = light_json.loads(b"".join(self._body).decode()) if response.status != 204 else {}
        if response.status is not None and response.status < 300:
            return [Done(self.rid, answer_value(self._op, value))]
        if "retry-after" in response.headers:
            raise LinkCut("the daemon is stopping")
        return [Failed(self.rid, _error(value))]

    def _event(self, kind: str, value: Message) -> Answer:
        if kind == "output":
            return Output(self.rid, value["stream"], value["offset"], b64decode(value["data"]))
        if kind in ("notification", "idle"):
            line = f"{light_json.dumps(value)}\n".encode() if kind == "notification" else b""
            return Output(self.rid, "notices", 0, line)
        if kind in ("place", "message"):
            return self._happened(kind, value)
        self.is_answered = True
        return Failed(self.rid, _error(value)) if kind == "error" else Done(self.rid, value)

    def _happened(self, kind: str, value: Message) -> Output:
        """An event as the operation streams it; at first, where the stream begins."""
        self._place = value["since"] if kind == "place" else value.get("seq", self._place)
        line = b"" if kind == "place" else f"{light_json.dumps(value)}\n".encode()
        return Output(self.rid, "events", self._place, line)


def _request(op: str, arguments: Message, place: Place, session: str | None, strict: bool) -> bytes:
    method, path, fields = request_words(op, arguments)
    head = [f"{method} {path} HTTP/1.1", f"Host: {place.authority}", f"Accept: {accepted(op, arguments)}"]
    if place.token:
        head.append(f"Authorization: Bearer {place.token}")
    if session and session.isprintable():
        head.append(f"Holdfast-Session: {session}")
    if strict:
        head.append("Holdfast-Strict: true")
    body = b""
    if fields is not None:
        try:
            body = light_json.dumps(fields).encode()
        except (TypeError, ValueError, RecursionError) as unsayable:
            raise refusal(fields, unsayable) from None
        head.append("Content-Type: application/json")
    if method == "POST":
        head.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(head) + "\r\n\r\n").encode("utf-8", "replace") + body


def _error(problem: Message) -> HoldfastError:
    said = {"code": problem.get("code", ""), "message": problem["detail"], "next": problem.get("next", "")}
    return from_wire({**said, "data": problem.get("data")})
