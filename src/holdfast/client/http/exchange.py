"""One operation over HTTP: the bytes of its request, and the replies in the bytes that come back. No I/O."""

from __future__ import annotations

import os
from base64 import b64decode
from urllib.parse import quote, urlencode

from holdfast import light_json
from holdfast.client.http.parser import EventParser, InvalidHttp, ResponseParser
from holdfast.client.link import Done, Failed, LinkCut, Output, refusal
from holdfast.errors import BadValue, Denied, HoldfastError, Unsupported, from_wire
from holdfast.model.addresses import is_loopback
from holdfast.ops.approvals import ApprovalReply
from holdfast.ops.catalog import OPERATIONS
from holdfast.peers import foreign_listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from holdfast.client.link import Answer
    from holdfast.paths import Paths
    from holdfast.wire.frames import Message

_API = "/api/v1"
_EVENT_STREAM = "text/event-stream"
#: Of a copy: an archive, and the bytes of one file.
_FILE_TYPES = ("application/x-tar", "application/octet-stream")
_NEXT = "http://127.0.0.1:PORT, as `holdfast daemon http` prints it"


class HttpAddress:
    """Where a daemon serves HTTP, and the token that it asks for."""

    __slots__ = ("host", "port", "token")

    def __init__(self, host: str, port: int, token: str | None) -> None:
        self.host = host
        self.port = port
        self.token = token

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def find_address(url: str, token: str | None, paths: Paths) -> HttpAddress:
    """The address that a URL names. Without a token, that of HOLDFAST_TOKEN is used, or on this machine that of the
    instance. Raises BadValue.
    """
    scheme, _, rest = url.partition("://")
    authority = rest.rstrip("/")
    host, colon, port = authority.rpartition(":")
    if scheme != "http" or not colon or not (port.isascii() and port.isdigit()) or "/" in host or "@" in host:
        raise BadValue(f"{url[:80]!r} is no address of a daemon", next=_NEXT)
    host = host.removeprefix("[").removesuffix("]")
    token = token or os.environ.get("HOLDFAST_TOKEN")
    if token is None and is_loopback(host):
        token = _own_token(paths)
    if token is not None and not (token.isascii() and token.isprintable()):
        raise BadValue("the token holds characters that no token has", next="cat $HOLDFAST_HOME/token")
    return HttpAddress(host, int(port), token)


def _own_token(paths: Paths) -> str | None:
    try:
        with open(paths.token, encoding="ascii", errors="replace") as file:
            return file.read(1024).strip() or None
    except OSError:
        return None


def check_listener(address: HttpAddress, sock: socket.socket) -> None:
    """Before the token is sent on a connection within this machine. Raises Denied if another user listens there."""
    if address.token is None or not is_loopback(sock.getpeername()[0]):
        return
    if (uid := foreign_listener(sock)) is not None:
        who = f"another user (uid {uid})" if uid >= 0 else "another user, or another network namespace"
        what = f"{who} listens at http://{address.authority}: the token was not sent"
        raise Denied(what, next="holdfast daemon http")


class HttpExchange:
    """`request` is to be sent; `feed` returns the replies. Raises BadValue for arguments that cannot be sent."""

    def __init__(
        self, rid: int, op: str, arguments: Message, address: HttpAddress, session: str | None, strict: bool = False
    ) -> None:
        self.rid = rid
        self.request = _request(op, arguments, address, session, strict)
        #: Whether pieces of a body follow the request; False again after the last.
        self.uploads = op in OPERATIONS and OPERATIONS[op].traits.uploads
        self.is_answered = False
        self._op = op
        self._response = ResponseParser()
        self._events = EventParser()
        self._body: list[bytes] = []
        #: The number of the last event of a stream.
        self._last_event = 0
        self._received = 0

    @property
    def keeps_alive(self) -> bool:
        return self._response.keeps_alive

    @property
    def is_over(self) -> bool:
        return self._response.is_over

    def piece(self, data: bytes) -> bytes:
        """The bytes that send a piece of the body; an empty piece is its end."""
        self.uploads = bool(data)
        return b"%x\r\n%b\r\n" % (len(data), data)

    def feed(self, data: bytes) -> list[Answer]:
        """Raises LinkCut when the daemon sends something else than HTTP, is stopping, or closed before it replied."""
        try:
            pieces = self._response.feed(data)
            answers = self._read(pieces)
        except (InvalidHttp, ValueError, KeyError, TypeError) as broken:
            raise LinkCut(f"the link to the daemon was cut: {broken}") from broken
        if self.is_over and not self.is_answered:
            raise LinkCut("the link to the daemon was cut: the stream ended early")
        return answers

    def _read(self, pieces: list[bytes]) -> list[Answer]:
        response = self._response
        if response.status == 200 and response.headers.get("content-type") == _EVENT_STREAM:
            events = [event for piece in pieces for event in self._events.feed(piece)]
            return [self._event(kind, light_json.loads(data)) for kind, data in events]
        if response.status == 200 and response.headers.get("content-type") in _FILE_TYPES:
            return self._file(pieces)
        self._body += pieces
        if not response.is_over:
            return []
        self.is_answered = True
        value = light_json.loads(b"".join(self._body).decode()) if response.status != 204 else {}
        if response.status is not None and response.status < 300:
            return [Done(self.rid, _operation_reply(self._op, value))]
        if "retry-after" in response.headers:
            raise LinkCut("the daemon is stopping")
        return [Failed(self.rid, _error(value))]

    def _file(self, pieces: list[bytes]) -> list[Answer]:
        answers: list[Answer] = []
        for piece in pieces:
            answers.append(Output(self.rid, "file", self._received, piece))
            self._received += len(piece)
        if self.is_over:
            self.is_answered = True
            answers.append(Done(self.rid, {}))
        return answers

    def _event(self, kind: str, value: Message) -> Answer:
        if kind == "output":
            return Output(self.rid, value["stream"], value["offset"], b64decode(value["data"]))
        if kind in ("notification", "idle"):
            line = f"{light_json.dumps(value)}\n".encode() if kind == "notification" else b""
            return Output(self.rid, "notices", 0, line)
        if kind in ("place", "message"):
            return self._bus_event(kind, value)
        self.is_answered = True
        return Failed(self.rid, _error(value)) if kind == "error" else Done(self.rid, value)

    def _bus_event(self, kind: str, value: Message) -> Output:
        """An event as the operation streams it; at first, the number where the stream begins."""
        self._last_event = value["since"] if kind == "place" else value.get("seq", self._last_event)
        line = b"" if kind == "place" else f"{light_json.dumps(value)}\n".encode()
        return Output(self.rid, "events", self._last_event, line)


def _request(op: str, arguments: Message, address: HttpAddress, session: str | None, strict: bool) -> bytes:
    method, path, fields = _http_request(op, arguments)
    head = [f"{method} {path} HTTP/1.1", f"Host: {address.authority}", f"Accept: {_accepted(op, arguments)}"]
    if address.token:
        head.append(f"Authorization: Bearer {address.token}")
    if session and session.isprintable():
        head.append(f"Holdfast-Session: {session}")
    if strict:
        head.append("Holdfast-Strict: true")
    body = b""
    if fields is not None:
        try:
            body = light_json.dumps(fields).encode()
        except (TypeError, ValueError, RecursionError) as invalid:
            raise refusal(fields, invalid) from None
        head.append("Content-Type: application/json")
    if method == "PUT":
        head += [f"Content-Type: {_file_type(arguments)}", "Transfer-Encoding: chunked"]
    elif method == "POST":
        head.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(head) + "\r\n\r\n").encode("utf-8", "replace") + body


def _http_request(op: str, arguments: Message) -> tuple[str, str, Message | None]:
    """Method, path with query, and the fields of the body (None for none), as the operation declares its route.

    Raises Unsupported for an operation that HTTP does not offer.
    """
    operation = OPERATIONS.get("inbox" if op == "notices" else op)
    if operation is None or not operation.traits.route:
        raise Unsupported(f"{op} is not available over HTTP", next="use the daemon's socket: unset HOLDFAST_URL")
    method, _, template = operation.traits.route.partition(" ")
    ask = _http_fields(op, {name: value for name, value in arguments.items() if value is not None})
    in_path = [piece[1:-1] for piece in template.split("/") if piece.startswith("{")]
    path = _API + template
    for name in in_path:
        path = path.replace(f"{{{name}}}", quote(str(ask.pop(name, "")), safe="", errors="replace"))
    if method not in ("GET", "PUT"):
        return method, path, ask if operation.FIELDS.keys() - in_path else None
    query = {name: light_json.dumps(value) if isinstance(value, bool) else value for name, value in ask.items()}
    return method, f"{path}?{urlencode(query, errors='replace')}" if query else path, None


def _http_fields(op: str, ask: Message) -> Message:
    """The fields with the names and defaults that they have over HTTP."""
    if op in ("start", "exec"):
        names = {"env": "caller_env", "grant": "env"}
        return {names.get(name, name): value for name, value in ask.items()}
    if op == "logs":
        return {"follow": False, "until": "closed", **ask, "view": "raw"}
    if op == "events":
        return {"follow": False, **ask}
    if op in ("put_file", "get_file"):  # the media type says it
        ask.pop("format", None)
    if op == "approvals":  # the media type says whether to follow
        ask.pop("follow", None)
    return ask


def _file_type(arguments: Message) -> str:
    return _FILE_TYPES[arguments.get("format") == "file"]


def _accepted(op: str, arguments: Message) -> str:
    if op == "get_file":
        return _file_type(arguments)
    is_stream = op in ("logs", "events", "notices") or (op == "approvals" and bool(arguments.get("follow")))
    return _EVENT_STREAM if is_stream else "application/json"


def _operation_reply(op: str, value: Message) -> Message:
    """The reply of the operation, from the reply over HTTP, which is flat in places."""
    if op in ("start", "exec"):
        notes = value.pop("notes", [])
        return {"process": value, "notes": notes}
    if op == "inspect" and not value.get("unchanged"):
        return {
            "seen": value.pop("seen", None),
            **{key: value.pop(key, None) for key in ("tree", "spec")},
            "process": value,
        }
    return {"approval": value} if OPERATIONS[op].Reply is ApprovalReply else value


def _error(problem: Message) -> HoldfastError:
    error = {"code": problem.get("code", ""), "message": problem["detail"], "next": problem.get("next", "")}
    return from_wire({**error, "data": problem.get("data")})
