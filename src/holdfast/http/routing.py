"""What a route is: enough to serve it, to refuse invalid requests and to describe it. Most come from `holdfast.ops`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import unquote

from holdfast.http.responses import HttpRefusal
from holdfast.ops.declare import Field, Operation, Record, Scope

if TYPE_CHECKING:
    from holdfast.http.request import HttpRequest
    from holdfast.http.responses import Response
    from holdfast.http.websocket import WebSocket

Schema: TypeAlias = dict[str, Any]
Serve: TypeAlias = Callable[["HttpRequest"], Awaitable["Response"]]
ServeSocket: TypeAlias = Callable[["HttpRequest", "WebSocket"], Awaitable[None]]

API = "/api/v1"
JSON = "application/json"
OCTETS = "application/octet-stream"
EVENT_STREAM = "text/event-stream"
#: As much as a frame of the socket holds.
MOST_BODY = (1 << 24) - 1
_LEAST_LIMIT = 64 << 10
#: Path parameters whose name in the path is not that of the field.
_PATH_NAMES = {"process": "id", "from": "session"}


@dataclass(frozen=True)
class Flat:
    """A reply whose object under `key` is not nested: its fields stand beside the others."""

    reply: type[Record]
    key: str


#: A record, a flattened reply, a JSON Schema, or several of which one applies.
Content: TypeAlias = type[Record] | Flat | Field | Schema | tuple["Content", ...]


class HeaderField(NamedTuple):
    name: str
    schema: Schema
    about: str


class RequestBody(NamedTuple):
    """A JSON object with these fields and no others; with `raw`, bytes are accepted as well."""

    fields: Mapping[str, Field]
    required: Sequence[str] = ()
    raw: bool = False
    optional: bool = False
    one_of: Sequence[str] = ()
    """Exactly one of these fields must be given."""

    @property
    def longest(self) -> int:
        """Bytes that its fields can take, written in the longest way, and as much white space."""
        most = sum(_longest(declared.kind.schema()) + len(name) for name, declared in self.fields.items())
        return min(MOST_BODY, max(_LEAST_LIMIT, MOST_BODY if self.raw else 2 * most))


def _longest(schema: Schema) -> int:
    """Bytes of the longest JSON value that a schema allows; MOST_BODY where it sets no bound."""
    match schema.get("type"):
        case "string":
            return 6 * int(schema.get("maxLength", 64)) + 8  # an escaped character has six
        case "array":
            return int(schema.get("maxItems", 10_000)) * (_longest(schema["items"]) + 1)
        case "integer" | "number" | "boolean":
            return 64
    return MOST_BODY


class Success(NamedTuple):
    """A reply that is no error: its content by media type; none for an empty one."""

    about: str
    content: Mapping[str, Content]
    headers: Mapping[str, str] = {}


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    name: str
    summary: str
    replies: Mapping[int, Success]
    serve: Serve | None = None
    serve_socket: ServeSocket | None = None
    """For a WebSocket: in place of `serve`, or beside it for clients that ask for an upgrade."""
    path_fields: Mapping[str, Field] = field(default_factory=dict)
    query: Mapping[str, Field] = field(default_factory=dict)
    headers: Sequence[HeaderField] = ()
    body: RequestBody | None = None
    uploads: Sequence[str] = ()
    """Media types of a body that is used as it comes, in place of `body`."""
    errors: Sequence[int] = ()
    about: str = ""
    reads: bool = False
    """Whether it changes nothing: a read-only page may use it."""
    is_described: bool = True
    """Whether OpenAPI has it; not where another protocol defines the messages."""
    media: Sequence[str] = field(init=False)

    def __post_init__(self) -> None:
        media = [media for reply in self.replies.values() for media in reply.content]
        object.__setattr__(self, "media", tuple(dict.fromkeys(media)))

    @property
    def is_socket(self) -> bool:
        """Whether it is a WebSocket alone."""
        return self.serve is None


def operation_route(
    operation: type[Operation],
    serve: Serve | None,
    *,
    without: Sequence[str] = (),
    renamed: Mapping[str, Field] | None = None,
    defaults: Mapping[str, object] | None = None,
    required: Sequence[str] = (),
    needs_body: bool = False,
    body: Mapping[str, Any] | None = None,
    errors: Sequence[int] = (),
    **changes: Any,
) -> Route:
    """The route that an operation declares. Its fields are in the path, the query of GET or the body of POST.

    HTTP has no fields `without`, and others `renamed` or with other `defaults`. `required` are those that must be
    given although they have a default. `errors` come in addition, `body` is for RequestBody, and `changes` replace
    what is derived.
    """
    traits = operation.traits
    method, _, path = traits.route.partition(" ")
    path_fields: dict[str, Field] = {}
    for name in [piece[1:-1] for piece in path.split("/") if piece.startswith("{")]:
        shown = _PATH_NAMES.get(name, name)
        path_fields[shown] = operation.FIELDS[name]
        path = path.replace(f"{{{name}}}", f"{{{shown}}}")
    left_out = {*without, *(one.name for one in path_fields.values())}
    fields = {name: one for name, one in operation.FIELDS.items() if name not in left_out}
    fields |= {name: _changed(one, "name", name) for name, one in (renamed or {}).items()}
    fields |= {name: _changed(fields[name], "default", value) for name, value in (defaults or {}).items()}
    derived: dict[str, Any] = {
        "path": f"{API}{path}",
        "name": traits.http_name,
        "summary": str(operation.__doc__).strip().partition("\n")[0].rstrip("."),
        "replies": {200: Success("Done", {JSON: operation.Reply})},
        "path_fields": path_fields,
        "reads": traits.reads,
    }
    if not operation.Reply.FIELDS:
        derived["replies"] = {204: Success("Done", {})}
    if method == "GET" or traits.uploads:
        derived["query"] = fields
    elif fields:
        required = (*required, *(name for name, one in fields.items() if one.is_required))
        derived["body"] = RequestBody(fields, required, optional=not (required or needs_body), **(body or {}))
    statuses = {*errors, *((507,) if traits.completes else ())}
    if traits.scope == Scope.PROCESSES:
        statuses |= {404, 409}
    return Route(method, serve=serve, errors=sorted(statuses), **{**derived, **changes})


def _changed(declared: Field, attribute: str, value: object) -> Field:
    changed = copy(declared)
    setattr(changed, attribute, value)
    return changed


class FoundRoute(NamedTuple):
    route: Route
    parameters: dict[str, str]


class RouteTable:
    """Routes by path and method."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self.routes = routes
        self._by_length: dict[int, list[tuple[list[str], dict[str, Route]]]] = {}
        for route in routes:
            self._add(route)

    def find(self, method: str, raw_path: str) -> FoundRoute:
        """Raises HttpRefusal for an unknown path (404) and for a method that it does not have (405)."""
        pieces = raw_path.split("/")[1:]
        for pattern, methods in self._by_length.get(len(pieces), ()):
            if (parameters := _match(pattern, pieces)) is None:
                continue
            route = methods.get(method) or (methods.get("GET") if method == "HEAD" else None)
            if route is None:
                raise _not_allowed(method, methods)
            return FoundRoute(route, parameters)
        raise HttpRefusal(404, "not_found", "there is nothing at this path", next="GET /api/v1/openapi.json")

    def allowed(self, raw_path: str) -> str:
        """The methods of a path, for OPTIONS. Raises HttpRefusal."""
        try:
            self.find("OPTIONS", raw_path)
        except HttpRefusal as refused:
            if refused.status == 405:
                return dict(refused.headers)["allow"]
            raise
        return "OPTIONS"

    def _add(self, route: Route) -> None:
        pattern = route.path.split("/")[1:]
        entries = self._by_length.setdefault(len(pattern), [])
        methods = {route.method: route} if route.serve is not None else {}
        if route.serve_socket is not None:
            methods["WEBSOCKET"] = route
        for known, there in entries:
            if known == pattern:
                there.update(methods)
                return
        entries.append((pattern, methods))


def _match(pattern: list[str], pieces: list[str]) -> dict[str, str] | None:
    parameters: dict[str, str] = {}
    for expected, piece in zip(pattern, pieces, strict=True):
        if expected.startswith("{"):
            parameters[expected[1:-1]] = _decoded(piece)
        elif expected != piece:
            return None
    return parameters


def _decoded(piece: str) -> str:
    try:
        return unquote(piece, errors="strict")
    except UnicodeDecodeError:
        raise HttpRefusal(404, "not_found", "the path is not UTF-8", next="GET /api/v1/openapi.json") from None


def _not_allowed(method: str, methods: Mapping[str, Route]) -> HttpRefusal:
    names = {name for name in methods if name != "WEBSOCKET"} | {"OPTIONS"}
    if "GET" in names:
        names.add("HEAD")
    if names == {"OPTIONS"}:
        upgrade = (("allow", "GET, OPTIONS"), ("upgrade", "websocket"))
        status = 426 if method in ("GET", "HEAD") else 405
        return HttpRefusal(status, "unsupported", "this is a WebSocket", next="ask for an upgrade", headers=upgrade)
    allow = ", ".join(sorted(names))
    return HttpRefusal(
        405, "unsupported", f"{method[:20]} is not allowed here", next=allow, headers=(("allow", allow),)
    )
