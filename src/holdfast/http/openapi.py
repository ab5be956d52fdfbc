"""The routes as an OpenAPI 3.1 document. Its components are the records of `holdfast.ops`."""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus

from holdfast import light_json
from holdfast.http.responses import PROBLEM_JSON
from holdfast.http.routes import ROUTES
from holdfast.http.routing import JSON, OCTETS, Content, Flat, HeaderField, RequestBody, Route, Schema, Success
from holdfast.ops import records
from holdfast.ops.declare import Field, Record
from holdfast.version import VERSION

_ABOUT = "Processes that outlive any crash. Errors are problem+json with the codes of the command line."
_ALWAYS = (400, 401, 403, 431, 500, 503)
#: Bounds of requests: replies are described without them.
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties")


@lru_cache(maxsize=1)
def document_bytes() -> bytes:
    return light_json.dumps(document()).encode()


def document() -> Schema:
    paths: Schema = {}
    for route in (route for route in ROUTES if route.is_described):
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "holdfast", "version": VERSION, "description": _ABOUT, "license": _LICENSE},
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {"schemas": _components(), "securitySchemes": {"token": _TOKEN}},
    }


_LICENSE = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "On TCP: the content of $HOLDFAST_HOME/token. On the socket none is needed.",
}


def _components() -> dict[str, Schema]:
    found = [one for one in vars(records).values() if isinstance(one, type) and issubclass(one, Record)]
    named = {one.__name__.removesuffix("Fields"): one for one in found if one is not Record}
    return {**{name: _record_schema(one) for name, one in named.items()}, "LogPage": _LOG_PAGE, "Problem": _PROBLEM}


def _record_schema(record: type[Record]) -> Schema:
    """A record that extends another one refers to it."""
    (base,) = record.__bases__
    inherited = base.FIELDS if issubclass(base, Record) else {}
    own = _object({name: one for name, one in record.FIELDS.items() if name not in inherited})
    if record.__doc__:
        own["description"] = record.__doc__.partition("\n")[0]
    return {"allOf": [_reference(base), own]} if inherited else own


def _reference(record: type[Record]) -> Schema:
    return {"$ref": f"#/components/schemas/{record.__name__.removesuffix('Fields')}"}


def _object(fields: dict[str, Field]) -> Schema:
    required = [name for name, one in fields.items() if one.is_required]
    return {"type": "object", "properties": {name: _value(one) for name, one in fields.items()}, "required": required}


def _value(declared: Field) -> Schema:
    """A field of a reply: without bounds, and null where its value may be missing."""
    schema = _unbounded(declared.kind.schema())
    if declared.is_optional:
        if "$ref" in schema:
            schema = {"anyOf": [schema, {"type": "null"}]}
        elif "type" in schema:
            schema["type"] = [schema["type"], "null"]
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    return {**schema, "description": declared.help} if declared.help else schema


def _unbounded(schema: Schema) -> Schema:
    kept = {name: value for name, value in schema.items() if name not in _BOUNDS}
    for inner in ("items", "additionalProperties"):
        if isinstance(kept.get(inner), dict):
            kept[inner] = _unbounded(kept[inner])
    return kept


def _content(content: Content) -> Schema:
    if isinstance(content, Flat):
        rest = {name: one for name, one in content.reply.FIELDS.items() if name != content.key}
        return {"allOf": [_value(content.reply.FIELDS[content.key]), _object(rest)]}
    if isinstance(content, tuple):
        return {"anyOf": [_content(one) for one in content]}
    if isinstance(content, Field):
        return _value(content)
    if isinstance(content, dict):
        return content
    return _reference(content) if content.__name__.endswith("Fields") else _record_schema(content)


def _operation(route: Route) -> Schema:
    described: Schema = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": [
            *(_parameter(name, one, "path") for name, one in route.path_fields.items()),
            *(_parameter(name, one, "query") for name, one in route.query.items()),
            *map(_header, (*route.headers, _SESSION, _STRICT)),
        ],
        "responses": {str(status): _response(success) for status, success in route.replies.items()},
    }
    for status in _errors(route):
        described["responses"][str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
    if route.about:
        described["description"] = route.about
    if route.body is not None:
        described["requestBody"] = _body(route.body)
    if route.uploads:
        content = {media: {"schema": {"type": "string", "format": "binary"}} for media in route.uploads}
        described["requestBody"] = {"required": True, "content": content}
    if route.path == "/livez":
        described["security"] = [{}]
    return described


_SESSION = HeaderField(
    "Holdfast-Session", {"type": "string", "maxLength": 256}, "The session that the caller speaks for."
)
_STRICT = HeaderField(
    "Holdfast-Strict", {"type": "string", "enum": ["true", "false"]}, "Whether only that session is visible."
)


def _errors(route: Route) -> list[int]:
    statuses = {*_ALWAYS, *route.errors}
    if "id" in route.path_fields:
        statuses |= {404, 409}
    if route.path_fields:
        statuses.add(404)
    if route.media:
        statuses.add(406)
    if route.body is not None:
        statuses |= {408, 413, 415}
    if route.is_socket:
        statuses.add(426)
    return sorted(statuses)


def _parameter(name: str, declared: Field, where: str) -> Schema:
    schema = declared.schema()
    about = schema.pop("description", "") or ("The name of a session." if name == "session" else "")
    return {
        "name": name,
        "in": where,
        "required": where == "path" or declared.is_required,
        "schema": schema,
        "description": about,
    }


def _header(header: HeaderField) -> Schema:
    described = {"name": header.name, "in": "header", "required": False, "schema": header.schema}
    return {**described, "description": header.about}


def _response(success: Success) -> Schema:
    described: Schema = {"description": success.about}
    if success.content:
        described["content"] = {media: {"schema": _content(content)} for media, content in success.content.items()}
    if success.headers:
        described["headers"] = {
            name: {"description": about, "schema": {"type": "string"}, "required": False}
            for name, about in success.headers.items()
        }
    return described


def _body(body: RequestBody) -> Schema:
    schema: Schema = {
        "type": "object",
        "properties": {name: one.schema() for name, one in body.fields.items()},
        "additionalProperties": False,
        "required": list(body.required),
    }
    if body.one_of:
        schema["oneOf"] = [{"required": [name]} for name in body.one_of]
    content: Schema = {JSON: {"schema": schema}}
    if body.raw:
        content[OCTETS] = {"schema": {"type": "string", "format": "binary"}}
    return {"required": not body.optional, "content": content}


def _literal(**types: str) -> Schema:
    properties = {name: {"type": type} for name, type in types.items()}
    return {"type": "object", "properties": properties, "required": list(properties)}


_LOG_PAGE = _literal(
    id="string",
    stream="string",
    start="integer",
    end="integer",
    total="integer",
    dropped="integer",
    omitted="integer",
    cursor="integer",
    next_offset="integer",
    closed="boolean",
    note="string",
    status="string",
)
_LOG_PAGE["description"] = "`text` is there with view=text, `data` with view=raw."
_LOG_PAGE["properties"] |= {"text": {"type": "string"}, "data": {"type": "string", "contentEncoding": "base64"}}
_PROBLEM = _literal(type="string", title="string", status="integer", code="string", detail="string", next="string")
_PROBLEM["properties"] |= {
    "code": {"type": "string", "description": "As on the command line: stable, for programs."},
    "detail": {"type": "string", "description": "What went wrong, in one line."},
    "next": {"type": "string", "description": "What to try."},
    "data": {"type": "object", "description": "More, for programs."},
}
