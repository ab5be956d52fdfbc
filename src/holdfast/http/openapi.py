"""The table of routes as an OpenAPI 3.1 document."""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus
from typing import Any

from holdfast.http.problems import MEDIA
from holdfast.http.request import OCTETS
from holdfast.http.routes import ROUTES
from holdfast.http.schemas import COMPONENTS, choice, text
from holdfast.http.table import JSON, Body, Parameter, Reply, Route
from holdfast.version import VERSION
from holdfast.wire import light_json

Node = dict[str, Any]

_ABOUT = "Processes that outlive any crash. Errors are problem+json with the codes of the command line."
_ALWAYS = (400, 401, 403, 431, 500, 503)
_PATH_ABOUT = {
    "id": "An id, a unique beginning of one (4 hex digits or more), or a name.",
    "session": "The name of a session.",
}


@lru_cache(maxsize=1)
def document_bytes() -> bytes:
    return light_json.dumps(document()).encode()


def document() -> Node:
    paths: Node = {}
    for route in (route for route in ROUTES if route.is_described):
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "holdfast", "version": VERSION, "description": _ABOUT, "license": _LICENSE},
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {"schemas": COMPONENTS, "securitySchemes": {"token": _TOKEN}},
    }


_LICENSE = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "On TCP: the content of $HOLDFAST_HOME/token. On the socket none is needed.",
}


def _operation(route: Route) -> Node:
    node: Node = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": [*_path_parameters(route), *map(_parameter, (*route.query, *route.headers, _SESSION, _STRICT))],
        "responses": {str(status): _response(reply) for status, reply in route.replies.items()},
    }
    for status in _errors(route):
        node["responses"][str(status)] = _PROBLEM | {"description": HTTPStatus(status).phrase}
    if route.about:
        node["description"] = route.about
    if route.body is not None:
        node["requestBody"] = _body(route.body)
    if route.path == "/livez":
        node["security"] = [{}]
    return node


_SESSION = Parameter("Holdfast-Session", text(256), "The session that the caller speaks for.", "header")
_STRICT = Parameter("Holdfast-Strict", choice("true", "false"), "Whether only that session is there.", "header")
_PROBLEM: Node = {"content": {MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}}}


def _errors(route: Route) -> list[int]:
    statuses = {*_ALWAYS, *route.errors}
    if "{id}" in route.path:
        statuses |= {404, 409}
    if "{" in route.path:
        statuses.add(404)
    if route.media:
        statuses.add(406)
    if route.body is not None:
        statuses |= {408, 413, 415}
    if route.is_socket:
        statuses.add(426)
    return sorted(statuses)


def _path_parameters(route: Route) -> list[Node]:
    names = [piece[1:-1] for piece in route.path.split("/") if piece.startswith("{")]
    schema = text(256, minLength=1)
    return [
        {"name": name, "in": "path", "required": True, "schema": schema, "description": _PATH_ABOUT[name]}
        for name in names
    ]


def _parameter(parameter: Parameter) -> Node:
    return {
        "name": parameter.name,
        "in": parameter.where,
        "required": False,
        "schema": parameter.schema,
        "description": parameter.about,
    }


def _response(reply: Reply) -> Node:
    node: Node = {"description": reply.about}
    if reply.content:
        node["content"] = {media: {"schema": schema} for media, schema in reply.content.items()}
    if reply.headers:
        node["headers"] = {
            name: {"description": about, "schema": {"type": "string"}, "required": False}
            for name, about in reply.headers.items()
        }
    return node


def _body(body: Body) -> Node:
    schema: Node = {
        "type": "object",
        "properties": dict(body.fields),
        "additionalProperties": False,
        "required": list(body.required),
    }
    if body.one_of:
        schema["oneOf"] = [{"required": [name]} for name in body.one_of]
    content: Node = {JSON: {"schema": schema}}
    if body.raw:
        content[OCTETS] = {"schema": {"type": "string", "format": "binary"}}
    return {"description": body.about, "required": not body.optional, "content": content}
