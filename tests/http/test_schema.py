"""The OpenAPI document is true: every response is described, and no request brings the daemon down."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS

import holdfast
from holdfast.client.http.exchange import HttpAddress, HttpExchange
from holdfast.http.openapi import document
from holdfast.http.routes import ROUTES
from holdfast.http.routing import API, RouteTable
from holdfast.ops.catalog import OPERATIONS
from holdfast.ops.records import PROCESS_FIELDS
from tests.http.asking import Api
from tests.support import end_instance

#: It ends the daemon, is a WebSocket, or writes files anywhere.
_LEFT_OUT = ["stopDaemon", "attach", "joinBus", "putFile"]

schema = schemathesis.openapi.from_dict(document()).exclude(operation_id=_LEFT_OUT)

_CHECKS = CHECKS.get_by_names(
    [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_schema_conformance",
        "response_headers_conformance",
    ]
)


_CONFIG = """
wait_limit = 0.1
grace = 0.1
[[sinks]]
name = "closed"
webhook = "http://127.0.0.1:9/"
tries = 1
"""


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    home = tmp_path_factory.mktemp("described") / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(_CONFIG)
    with holdfast.connect(home=home) as client:
        api = Api(client)
        api.open_tcp()
        client.run("echo hello; exec cat", name="running", stdin=True)
        client.wait(client.run("echo one; echo two; echo three", name="over").id)
        yield api
    end_instance(str(home))


@schema.parametrize()
@settings(
    max_examples=8,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_response_is_described(case: Any, described: Api, tmp_path_factory: pytest.TempPathFactory) -> None:
    for target in _targets(case):
        if target is not None:
            case.path_parameters["id"] = target
        _tame(case, tmp_path_factory.getbasetemp())
        headers = {"Authorization": f"Bearer {described.token}"}
        response = case.call(base_url=described.url, headers=headers, timeout=90)
        case.validate_response(response, checks=_CHECKS)


def _targets(case: Any) -> list[str | None]:
    """The generated path; where it names a process, also one that runs and one that has ended."""
    names = case.path_parameters or {}
    return [None, "running", "over"] if "id" in names and case.method != "DELETE" else [None]


def _tame(case: Any, where: Path) -> None:
    """Generated commands must not reach a shell, and waits must be short."""
    body = case.body
    if not isinstance(body, dict):
        return
    if isinstance(body.get("command"), str) and body["command"].strip():
        body["command"] = ": " + "x" * min(10, len(body["command"]))
    if isinstance(body.get("argv"), list) and body["argv"] and isinstance(body["argv"][0], str) and body["argv"][0]:
        body["argv"][0] = "true"
    for name in ("shell", "cwd", "stop_cmd", "ready_http", "restart"):
        body.pop(name, None)
    if isinstance(body.get("processes"), list) and body["processes"]:
        body["processes"][0] = "running"
    if isinstance(body.get("grace"), (int, float)) and body["grace"] > 0.1:
        body["grace"] = 0.1
    for name in ("env", "caller_env"):
        if isinstance(body.get(name), dict):
            body[name].pop("PATH", None)


def test_every_route_is_described() -> None:
    paths = document()["paths"]
    others = {route.path for route in ROUTES if not route.is_described}  # others define their messages
    assert others == {"/mcp", "/api/dashboard/plugins", "/api/dashboard/plugins/rescan", "/api/dashboard/themes"}
    for route in (route for route in ROUTES if route.is_described):
        operation = paths[route.path][route.method.lower()]
        assert operation["operationId"] == route.name
        assert {str(status) for status in route.replies} <= operation["responses"].keys()
    names = [route.name for route in ROUTES]
    assert len(set(names)) == len(names)


def test_the_process_object_has_all_fields() -> None:
    described = document()["components"]["schemas"]["Process"]
    assert set(described["properties"]) == set(PROCESS_FIELDS)


def test_every_property_has_a_type() -> None:
    assert list(_untyped(document(), "")) == []


def _untyped(node: Any, path: str) -> Iterator[str]:
    if isinstance(node, list):
        for number, value in enumerate(node):
            yield from _untyped(value, f"{path}/{number}")
    elif isinstance(node, dict):
        properties = node.get("properties")
        for name, value in properties.items() if isinstance(properties, dict) else ():
            if not value.keys() & {"type", "$ref", "enum", "const", "oneOf", "anyOf", "allOf"}:
                yield f"{path}/{name}"
        for name, value in node.items():
            yield from _untyped(value, f"{path}/{name}")


@pytest.mark.parametrize("operation", [one for one in OPERATIONS.values() if one.traits.route], ids=lambda one: one.op)
def test_every_operation_with_a_route_is_served_and_described(operation: Any) -> None:
    method, _, path = operation.traits.route.partition(" ")
    names = re.findall(r"{(\w+)}", path)
    found = RouteTable(ROUTES).find(method, API + re.sub(r"{\w+}", "x", path))
    assert found.route.serve is not None
    described = document()["paths"][found.route.path][method.lower()]
    assert described["operationId"] == operation.traits.http_name
    body = described.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    given = {one["name"] for one in described["parameters"]} | body.get("properties", {}).keys()
    assert operation.FIELDS.keys() - given - set(names) <= {"grant", "fingerprint", "follow", "format"}


@pytest.mark.parametrize("operation", [one for one in OPERATIONS.values() if one.traits.route], ids=lambda one: one.op)
def test_the_python_client_requests_the_route_of_an_operation(operation: Any) -> None:
    in_path = dict.fromkeys(re.findall(r"{(\w+)}", operation.traits.route), "a/b {c}")
    exchange = HttpExchange(1, operation.op, in_path, HttpAddress("127.0.0.1", 1, None), None)
    method, target, _ = exchange.request.decode().partition("\r\n")[0].split(" ")
    found = RouteTable(ROUTES).find(method, target.partition("?")[0])
    assert found.route.name == operation.traits.http_name
    assert list(found.parameters.values()) == list(in_path.values())


#: Requests with much in their replies.
_FULL = [
    ("GET", "/processes?all=true", None),
    ("GET", "/processes/running?tree=true", None),
    ("GET", "/processes/over/search?pattern=two&before=1&after=1", None),
    ("GET", "/processes/over/log", None),
    ("GET", "/processes/over/log?view=raw", None),
    ("GET", "/processes/terminal/screen", None),
    ("POST", "/wait", {"processes": ["over"], "until": "match", "match": "two", "after": 0}),
    ("POST", "/processes/over/wait", {"until": "match", "match": "two", "after": 0}),
    ("POST", "/processes/running/restart", None),
    ("POST", "/processes/running/stdin", {"text": "x"}),
    ("POST", "/processes/running/transfer", {"to": "described"}),
    ("GET", "/top", None),
    ("GET", "/sessions", None),
    ("GET", "/sessions/described/digest", None),
    ("GET", "/sessions/default/inbox", None),
    ("GET", "/events", None),
    ("GET", "/sinks", None),
    ("POST", "/sinks/test", None),
    ("GET", "/sinks/dead", None),
    ("GET", "/audit?verify=true", None),
    ("GET", "/daemon", None),
    ("GET", "/daemon/doctor", None),
    ("GET", "/approvals", None),
    ("POST", "/redact", {"texts": ["x"]}),
    ("POST", "/kill", {"processes": ["terminal"], "grace": 0.1}),
    ("POST", "/sessions/described/end", {"to": "default"}),
]


def test_replies_have_no_fields_that_are_not_declared(described: Api) -> None:
    client = described.client
    client.run("read line", name="terminal", pty=True)
    components = {
        name: schema if name == "Process" else {**schema, "unevaluatedProperties": False}
        for name, schema in document()["components"]["schemas"].items()
    }
    for method, path, body in _FULL:
        reply = described.ask(method, API + path, body)
        assert reply.status == 200, (path, reply)
        route = RouteTable(ROUTES).find(method, API + path.partition("?")[0]).route
        described_there = document()["paths"][route.path][method.lower()]["responses"]["200"]
        schema = described_there["content"]["application/json"]["schema"]
        closed = schema if "$ref" in schema else {**schema, "unevaluatedProperties": False}
        jsonschema.Draft202012Validator({**closed, "components": {"schemas": components}}).validate(reply.value)
