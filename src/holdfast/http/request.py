"""One request while it is under way: what it brings, and asking the daemon for what it wants."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from holdfast.daemon import dispatch, strict, values
from holdfast.daemon.consuming import consumed_by_answer
from holdfast.daemon.room import Call, Message, Room
from holdfast.errors import BadValue, HoldfastError
from holdfast.http.negotiate import choose, media_of
from holdfast.http.problems import Gone, Refusal
from holdfast.http.table import JSON, Parameter, Route, Schema
from holdfast.model.process import Process
from holdfast.ops.catalog import OPERATIONS
from holdfast.wire import light_json

T = TypeVar("T")

OCTETS = "application/octet-stream"
#: As much as a frame of the socket holds.
MOST_BODY = (1 << 24) - 1
#: A body that takes longer is given up.
_BODY_TIME = 30.0
_MOST_FIELDS = 100

SendData = Callable[[str, int, bytes], Awaitable[None]]


class Request:
    """`scope` and `receive` as in ASGI. `stopping` is done when the daemon goes."""

    def __init__(self, room: Room, scope: Mapping[str, Any], receive: Any, stopping: asyncio.Future[None]) -> None:
        self.room = room
        self.scope = scope
        self.method: str = scope.get("method", "WEBSOCKET")
        self.path = scope["raw_path"].decode("ascii", "replace")
        self.headers = _headers(scope["headers"])
        self.parameters: dict[str, str] = {}
        self.query: Message = {}
        self.media = JSON
        self._receive = receive
        self.stopping = stopping
        self._body: bytes | None = None
        #: Those whose answers tell the news of notices.
        self._telling: list[Call] = []

    @property
    def id(self) -> str:
        """The process that the path names."""
        return self.parameters["id"]

    def header(self, name: str) -> str | None:
        found = self.headers.get(name)
        return ", ".join(found) if found else None

    def prepare(self, route: Route, parameters: dict[str, str]) -> None:
        """Read what the route takes. Raises BadValue, Refusal."""
        self.parameters = parameters
        self.query = read_query(self.scope["query_string"], route.query)
        if route.media:
            media = choose(self.header("accept"), route.media)
            if media is None:
                forms = ", ".join(route.media)
                raise Refusal(406, "unsupported", "none of the accepted forms is to be had", next=f"accept {forms}")
            self.media = media

    async def fields(self, route: Route) -> Message:
        """The fields of the JSON body; none where it is optional and there is none. Raises BadValue, Refusal."""
        assert route.body is not None
        data = await self.body()
        content_type = self.header("content-type")
        if not data and content_type is None and route.body.optional:
            return {}
        if media_of(content_type) != JSON:
            forms = [JSON, OCTETS] if route.body.raw else [JSON]
            raise Refusal(
                415, "unsupported", "the body is of a type that is not taken", next=f"send {' or '.join(forms)}"
            )
        if not data and route.body.optional:
            return {}
        fields = _json_object(data)
        if unknown := fields.keys() - route.body.fields.keys():
            known = ", ".join(route.body.fields)
            raise BadValue(f"there is no field {min(unknown)[:60]!r}", next=f"known: {known}")
        for name, value in fields.items():
            _check_choice(name, value, route.body.fields[name])
        return fields

    async def body(self) -> bytes:
        """All of the body. Raises Refusal when it is too large or too slow."""
        if self._body is None:
            try:
                async with asyncio.timeout(_BODY_TIME):
                    self._body = await self._read_body()
            except TimeoutError:
                raise Refusal(
                    408, "bad_value", "the body took too long", next="send it faster", headers=_CLOSE
                ) from None
        return self._body

    async def _read_body(self) -> bytes:
        announced = self.header("content-length")
        if announced is not None and announced.isdigit() and (len(announced) > 12 or int(announced) > MOST_BODY):
            raise _too_large()
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Gone("the client went away")
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > MOST_BODY:
                raise _too_large()
            if not message.get("more_body"):
                return b"".join(pieces)

    async def ask(
        self, op: str, arguments: Message, send_data: SendData | None = None, taker: object = None
    ) -> Message:
        """What the daemon answers. What is to go on goes on when the client goes away."""
        call = self.call(send_data, taker)
        work = dispatch.answer(self.room, call, op, arguments)
        if not OPERATIONS[op].traits.completes:
            try:
                return await work
            finally:
                if call.consumed:
                    self._telling.append(call)
        try:
            result = await asyncio.shield(self.room.chores.start(_settled(work), "request"))
        finally:
            call.given_up.set()
        if isinstance(result, HoldfastError):
            raise result
        settled: Message = result
        return settled

    def call(self, send_data: SendData | None = None, taker: object = None) -> Call:
        """Who asks. Raises BadValue."""
        kinship = self.room.ancestry.of(self.scope["state"]["pid"])
        session = (kinship.session if kinship is not None else None) or self._session()
        resolved = self.room.sessions.resolve(session) if session is not None else None
        is_gated = kinship is not None
        return Call(resolved, send_data or _nothing_to_send, taker, is_strict=self._is_strict(), is_gated=is_gated)

    def find(self, text: str) -> Process:
        """The process that is meant, among those that the caller sees. Raises NotFound, Ambiguous, BadValue."""
        return strict.find(self.room, self.call(), text)

    def settle(self, is_sent: bool) -> None:
        """The answer was sent, or nobody was there any more: what it tells of counts as told, or is told otherwise."""
        telling, self._telling = self._telling, []
        for call in telling:
            if is_sent:
                self.room.chores.start(consumed_by_answer(self.room, call), "consumed")
            else:
                self.room.inbox.release(call.consumed, call)

    async def while_there(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something that may take long, for as long as the client is there and the daemon stays."""
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self._gone())
        try:
            waits: set[asyncio.Future[Any]] = {task, gone, self.stopping}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if self.stopping.done():
                raise Refusal(503, "unreachable", "the daemon is stopping", next="try again", headers=_AGAIN)
            raise Gone("the client went away")
        finally:
            for waiting in (task, gone):
                waiting.cancel()
            await asyncio.wait({task, gone})

    async def _gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def _is_strict(self) -> bool:
        said = self.header("holdfast-strict")
        if said not in (None, "true", "false"):
            raise BadValue("Holdfast-Strict must be true or false")
        return said == "true"

    def _session(self) -> str | None:
        named = self.header("holdfast-session")
        if named is not None:
            with suppress(UnicodeDecodeError):  # else it was meant as Latin-1, as headers once were
                named = named.encode("latin-1").decode()
        return values.session({"session": named})


def read_query(query: bytes, known: Sequence[Parameter]) -> Message:
    """The values that were given, each as what its schema says. Raises BadValue."""
    if not query:
        return {}
    try:
        pairs = parse_qsl(query.decode("ascii"), True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise BadValue("the query cannot be read", next="encode it as UTF-8, in percent") from None
    schemas = {parameter.name: parameter.schema for parameter in known}
    given: Message = {}
    for name, text in pairs:
        if name not in schemas:
            names = ", ".join(schemas) or "none"
            raise BadValue(f"there is no parameter {name[:60]!r}", next=f"known: {names}")
        if name in given:
            raise BadValue(f"{name} is there twice", next="give it once")
        given[name] = _converted(name, text, schemas[name].get("type"))
        _check_choice(name, given[name], schemas[name])
    return given


def _converted(name: str, text: str, kind: object) -> object:
    try:
        match kind:
            case "integer":
                if not text.removeprefix("-").isdigit() or not text.isascii() or len(text) > 20:
                    raise ValueError
                return int(text)
            case "number":
                return float(text)
            case "boolean":
                return {"true": True, "1": True, "false": False, "0": False}[text]
            case _:
                return text
    except (ValueError, KeyError):
        raise BadValue(
            f"{name} must be {_KINDS[str(kind)]}, not {text[:60]!r}", next="see /api/v1/openapi.json"
        ) from None


def _check_choice(name: str, value: object, schema: Schema) -> None:
    """Where there is a choice, it is one of those. Null is as if it had not been said. Raises BadValue."""
    choices = schema.get("enum")
    if choices is not None and value is not None and value not in choices:
        raise BadValue(f"{name} must be one of {', '.join(choices)}, not {str(value)[:60]!r}")


_KINDS = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}
_CLOSE = (("connection", "close"),)
_AGAIN = (("retry-after", "1"),)


def _headers(raw: Sequence[tuple[bytes, bytes]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in raw:
        found.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    return found


def _json_object(data: bytes) -> Message:
    try:
        value = light_json.loads(data.decode())
    except (ValueError, RecursionError):
        raise BadValue("the body is not JSON", next="send a JSON object") from None
    if not isinstance(value, dict):
        raise BadValue("the body must be a JSON object", next="send a JSON object")
    return value


def _too_large() -> Refusal:
    what = f"the body has more than {MOST_BODY} bytes"
    return Refusal(413, "bad_value", what, next="send it in several pieces", headers=_CLOSE)


async def _settled(work: Awaitable[Message]) -> Message | HoldfastError:
    try:
        return await work
    except HoldfastError as error:
        return error


async def _nothing_to_send(stream: str, offset: int, data: bytes) -> None:
    raise AssertionError("an operation that does not stream")
