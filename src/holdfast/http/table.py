"""What a route is: enough to serve it, to refuse what it does not take, and to describe it to others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import unquote

from holdfast.http.problems import Refusal

if TYPE_CHECKING:
    from holdfast.http.answers import Answer
    from holdfast.http.request import Request
    from holdfast.http.socket import Socket

Schema: TypeAlias = dict[str, Any]
Serve: TypeAlias = Callable[["Request"], Awaitable["Answer"]]
ServeSocket: TypeAlias = Callable[["Request", "Socket"], Awaitable[None]]

JSON = "application/json"


class Parameter(NamedTuple):
    name: str
    schema: Schema
    about: str
    where: str = "query"


class Body(NamedTuple):
    """A JSON object with these fields and no others; with `raw`, bytes are taken as well."""

    fields: Mapping[str, Schema]
    about: str
    required: Sequence[str] = ()
    raw: bool = False
    optional: bool = False
    one_of: Sequence[str] = ()
    """Exactly one of these fields has to be there."""


class Reply(NamedTuple):
    """What comes when all is well: one schema for each media type; none for an empty answer."""

    about: str
    content: Mapping[str, Schema]
    headers: Mapping[str, str] = {}


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    name: str
    summary: str
    replies: Mapping[int, Reply]
    serve: Serve | None = None
    serve_socket: ServeSocket | None = None
    """For a WebSocket: in place of `serve`, or beside it for those who ask for an upgrade."""
    query: Sequence[Parameter] = ()
    headers: Sequence[Parameter] = ()
    body: Body | None = None
    errors: Sequence[int] = ()
    needs: str = ""
    """The operation of the daemon without which there is no such route."""
    about: str = ""
    is_described: bool = True
    """Whether OpenAPI tells of it; not where another protocol says what is sent."""
    media: Sequence[str] = field(init=False)

    def __post_init__(self) -> None:
        media = [media for reply in self.replies.values() for media in reply.content]
        object.__setattr__(self, "media", tuple(dict.fromkeys(media)))

    @property
    def is_socket(self) -> bool:
        """Whether there is nothing here but a WebSocket."""
        return self.serve is None


class Found(NamedTuple):
    route: Route
    parameters: dict[str, str]


class Table:
    """Routes by path and method."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self.routes = routes
        self._by_length: dict[int, list[tuple[list[str], dict[str, Route]]]] = {}
        for route in routes:
            self._add(route)

    def find(self, method: str, raw_path: str) -> Found:
        """Raises Refusal for what is not there (404) and for what cannot be done with it (405)."""
        pieces = raw_path.split("/")[1:]
        for pattern, methods in self._by_length.get(len(pieces), ()):
            if (parameters := _match(pattern, pieces)) is None:
                continue
            route = methods.get(method) or (methods.get("GET") if method == "HEAD" else None)
            if route is None:
                raise _not_allowed(method, methods)
            return Found(route, parameters)
        raise Refusal(404, "not_found", "there is nothing at this path", next="GET /api/v1/openapi.json")

    def allowed(self, raw_path: str) -> str:
        """What can be done with a path, for OPTIONS. Raises Refusal."""
        try:
            self.find("OPTIONS", raw_path)
        except Refusal as refused:
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
    for wanted, piece in zip(pattern, pieces, strict=True):
        if wanted.startswith("{"):
            parameters[wanted[1:-1]] = _decoded(piece)
        elif wanted != piece:
            return None
    return parameters


def _decoded(piece: str) -> str:
    try:
        return unquote(piece, errors="strict")
    except UnicodeDecodeError:
        raise Refusal(404, "not_found", "the path is no UTF-8", next="GET /api/v1/openapi.json") from None


def _not_allowed(method: str, methods: Mapping[str, Route]) -> Refusal:
    names = {name for name in methods if name != "WEBSOCKET"} | {"OPTIONS"}
    if "GET" in names:
        names.add("HEAD")
    if names == {"OPTIONS"}:
        upgrade = (("allow", "GET, OPTIONS"), ("upgrade", "websocket"))
        status = 426 if method in ("GET", "HEAD") else 405
        return Refusal(status, "unsupported", "this is a WebSocket", next="ask for an upgrade", headers=upgrade)
    allow = ", ".join(sorted(names))
    return Refusal(405, "unsupported", f"{method[:20]} cannot be done here", next=allow, headers=(("allow", allow),))
