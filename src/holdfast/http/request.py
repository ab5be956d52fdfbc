"""One HTTP request while it is under way: its values, and calls to the daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from holdfast import light_json
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.listener import scope
from holdfast.daemon.listener.accepting import BoundOrigin
from holdfast.daemon.listener.connection import PendingCall
from holdfast.daemon.listener.page_access import PageSession
from holdfast.errors import BadValue, Denied
from holdfast.http.negotiate import choose, media_of
from holdfast.http.responses import ClientGone, HttpRefusal
from holdfast.http.routing import JSON, MOST_BODY, OCTETS, RequestBody, Route
from holdfast.model.process import HeldProcess
from holdfast.ops.catalog import OPERATIONS
from holdfast.ops.declare import Field
from holdfast.ops.kinds import FlagKind, IntegerKind, NumberKind, SessionKind
from holdfast.wire import json_bounds

T = TypeVar("T")

#: A longer body is checked and parsed in a thread.
_LONG_BODY = 64 << 10
#: A body that takes longer is refused.
_BODY_TIME = 30.0
_MOST_PARAMETERS = 100

SendData = Callable[[str, int, bytes], Awaitable[None]]
ReceiveData = Callable[[], Awaitable[bytes]]


class HttpRequest:
    """`scope` and `receive` as in ASGI. `stopping` is done when the daemon stops."""

    def __init__(
        self, context: DaemonContext, scope: Mapping[str, Any], receive: Any, stopping: asyncio.Future[None]
    ) -> None:
        self.context = context
        self.scope = scope
        self.method: str = scope.get("method", "WEBSOCKET")
        self.raw_path = scope["raw_path"].decode("ascii", "replace")
        self.headers = _headers(scope["headers"])
        #: The page of the dashboard that asks; None for a program.
        self.page: PageSession | None = None
        #: Fields of the operation that the path and the query give.
        self.path: Message = {}
        self.query: Message = {}
        self.media = JSON
        self.stopping = stopping
        self._receive = receive
        self._route: Route | None = None
        self._body: bytes | None = None
        #: Whether `next_piece` has seen the end of the body.
        self._is_read = False
        #: Calls whose replies stand for notifications.
        self._undelivered: list[PendingCall] = []

    def header(self, name: str) -> str | None:
        found = self.headers.get(name)
        return ", ".join(found) if found else None

    @property
    def is_secure(self) -> bool:
        """Whether it came over TLS."""
        return self.scope["scheme"] in ("https", "wss")

    @property
    def is_read_only(self) -> bool:
        return self.page is not None and self.page.read_only

    def prepare(self, route: Route, parameters: dict[str, str]) -> None:
        """Read the path, the query and the accepted media types. Raises BadValue, HttpRefusal."""
        self._route = route
        for name, text in parameters.items():
            declared = route.path_fields[name]
            self.path[declared.name] = declared.check(text)
        self.query = read_query(self.scope["query_string"], route.query)
        if self.is_read_only and (not route.reads or self.query.get("take") or "holdfast-session" in self.headers):
            raise _read_only()
        if route.media:
            media = choose(self.header("accept"), route.media)
            if media is None:
                forms = ", ".join(route.media)
                raise HttpRefusal(
                    406, "unsupported", "there is none of the accepted media types", next=f"accept {forms}"
                )
            self.media = media

    async def fields(self) -> Message:
        """The fields of the JSON body; none where it is optional and empty. Raises BadValue, HttpRefusal."""
        assert self._route is not None
        accepted = self._route.body
        if accepted is None:
            return {}
        data, content_type = await self.body(), self.header("content-type")
        if not data and accepted.optional and media_of(content_type) in ("", JSON):
            return {}
        if media_of(content_type) != JSON:
            forms = f"{JSON} or {OCTETS}" if accepted.raw else JSON
            raise HttpRefusal(415, "unsupported", "the body has a type that is not accepted", next=f"send {forms}")
        if len(data) > _LONG_BODY:
            return await asyncio.to_thread(_read_fields, data, accepted)
        return _read_fields(data, accepted)

    async def body(self) -> bytes:
        """All of the body. Raises HttpRefusal when it is too large or too slow."""
        if self._body is None:
            try:
                async with asyncio.timeout(_BODY_TIME):
                    self._body = await self._read_body()
            except TimeoutError:
                raise HttpRefusal(
                    408, "bad_value", "the body took too long", next="send it faster", headers=_CLOSE
                ) from None
        return self._body

    async def _read_body(self) -> bytes:
        announced = self.header("content-length") or ""
        length = (
            int(announced) if announced.isdigit() and len(announced) <= 12 else MOST_BODY + 1 if announced else None
        )
        accepted = self._route.body if self._route is not None else None
        # Most bodies are short: what their fields can take need not be added up.
        is_short = length is not None and length <= _LONG_BODY
        most = MOST_BODY if accepted is None or is_short else accepted.longest
        if length is not None and length > most:
            raise _too_large(most)
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > most:
                raise _too_large(most)
            if not message.get("more_body"):
                return b"".join(pieces)

    async def next_piece(self) -> bytes:
        """The next bytes of a body that is used as it comes; empty at its end. Raises ClientGone."""
        while not self._is_read:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            self._is_read = not message.get("more_body")
            if data := message.get("body"):
                return bytes(data)
        return b""

    async def ask(
        self,
        op: str,
        arguments: Message,
        send_data: SendData | None = None,
        taker: object = None,
        receive_data: ReceiveData | None = None,
    ) -> Message:
        """The daemon's reply to an operation. Raises what its handler raises."""
        if self.is_read_only and not OPERATIONS[op].traits.reads:
            raise _read_only()
        pending = PendingCall(self.context, self.call(send_data, taker, receive_data), op)
        reply = await pending.reply(arguments)
        if pending.needs_delivery:
            self._undelivered.append(pending)
        return reply

    def call(
        self, send_data: SendData | None = None, taker: object = None, receive_data: ReceiveData | None = None
    ) -> Call:
        """Who asks. Raises BadValue."""
        origin: BoundOrigin | None = self.scope["state"]["origin"]
        named = self._session()
        session = origin.session if origin is not None else named
        resolved = self.context.sessions.resolve(session) if session is not None else None
        claimed = named if origin is not None else None
        send_data = send_data or _cannot_stream
        client = "dashboard" if self.page is not None and session is None else None
        return Call(resolved, send_data, taker, self._is_strict(), origin, None, claimed, receive_data, client)

    def find(self, name: str | None = None) -> HeldProcess:
        """The process that the path names, or `name`, among those that the caller sees.

        Raises NotFound, Ambiguous, BadValue.
        """
        return scope.find(self.context, self.call(), self.path["process"] if name is None else name)

    def settle(self, is_sent: bool) -> None:
        """The response was sent, or could not be: its notifications are delivered, or go back to the inbox."""
        undelivered, self._undelivered = self._undelivered, []
        for pending in undelivered:
            pending.delivered() if is_sent else pending.not_delivered()

    async def while_connected(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something that may take long. It is cancelled when the client disconnects or the daemon stops."""
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self._disconnected())
        try:
            waits: set[asyncio.Future[Any]] = {task, gone, self.stopping}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if self.stopping.done():
                raise HttpRefusal(503, "unreachable", "the daemon is stopping", next="try again", headers=_AGAIN)
            raise ClientGone
        finally:
            for waiting in (task, gone):
                waiting.cancel()
            await asyncio.wait({task, gone})

    async def until_stopping(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something that reads the body as it comes. It is cancelled when the daemon stops."""
        task = asyncio.ensure_future(work)
        try:
            waits: set[asyncio.Future[Any]] = {task, self.stopping}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise HttpRefusal(503, "unreachable", "the daemon is stopping", next="try again", headers=_AGAIN)
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def _disconnected(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def _is_strict(self) -> bool:
        given = self.header("holdfast-strict")
        if given not in (None, "true", "false"):
            raise BadValue("Holdfast-Strict must be true or false")
        return given == "true"

    def _session(self) -> str | None:
        named = self.header("holdfast-session")
        if named is None:
            return None
        with suppress(UnicodeDecodeError):  # otherwise it is Latin-1, as headers once were
            named = named.encode("latin-1").decode()
        return SessionKind({}).check(named, "session")


def _read_only() -> Denied:
    return Denied("this page can only look", next="open a page that can do more: holdfast dashboard")


def read_query(query: bytes, known: Mapping[str, Field]) -> Message:
    """The values that are given, each converted by the kind of its field. Raises BadValue."""
    if not query:
        return {}
    try:
        pairs = parse_qsl(query.decode("ascii"), True, errors="strict", max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        raise BadValue("the query cannot be read", next="encode it as UTF-8, in percent") from None
    given: Message = {}
    for name, text in pairs:
        if name in given:
            raise BadValue(f"{name} is given twice", next="give it once")
        given[name] = _converted(known[name], text) if name in known else text
        _check(name, given[name], known, "parameter")
    return given


def _check(name: str, value: object, known: Mapping[str, Field], what: str) -> None:
    """Null means not given. Raises BadValue."""
    if name not in known:
        raise BadValue(f"there is no {what} {name[:60]!r}", next=f"known: {', '.join(known) or 'none'}")
    if value is not None:
        known[name].check(value)


def _converted(declared: Field, text: str) -> object:
    kind = declared.kind
    try:
        if isinstance(kind, IntegerKind):
            if not text.removeprefix("-").isdigit() or not text.isascii() or len(text) > 20:
                raise ValueError
            return int(text)
        if isinstance(kind, NumberKind):
            return float(text)
        if isinstance(kind, FlagKind):
            return {"true": True, "1": True, "false": False, "0": False}[text]
        return text
    except (ValueError, KeyError):
        expected = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}[str(kind.type)]
        what = f"{declared.name} must be {expected}, not {text[:60]!r}"
        raise BadValue(what, next="see /api/v1/openapi.json") from None


_CLOSE = (("connection", "close"),)
_AGAIN = (("retry-after", "1"),)


def _headers(raw: Sequence[tuple[bytes, bytes]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in raw:
        found.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    return found


def _read_fields(data: bytes, accepted: RequestBody) -> Message:
    """The fields of a body. Raises BadValue, HttpRefusal."""
    try:
        json_bounds.check_values(data)
    except json_bounds.TooManyValues:
        raise HttpRefusal(413, "bad_value", "the body has too many values", next="send fewer at once") from None
    given = _json_object(data)
    for name, value in given.items():
        _check(name, value, accepted.fields, "field")
    return given


def _json_object(data: bytes) -> Message:
    try:
        value = light_json.loads(data.decode())
    except (ValueError, RecursionError):
        raise BadValue("the body is not JSON", next="send a JSON object") from None
    if not isinstance(value, dict):
        raise BadValue("the body must be a JSON object", next="send a JSON object")
    return value


def _too_large(most: int) -> HttpRefusal:
    what = f"the body has more than {most} bytes"
    return HttpRefusal(413, "bad_value", what, next="send it in several pieces", headers=_CLOSE)


async def _cannot_stream(stream: str, offset: int, data: bytes) -> None:
    raise AssertionError("an operation that does not stream")
