"""The description holds: whatever is sent, what comes back is described, and nothing brings the daemon down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS

import holdfast
from holdfast.http.openapi import document
from holdfast.http.routes import ROUTES
from holdfast.ops.records import PROCESS_FIELDS
from tests.http.asking import Api
from tests.support import end_instance

#: Ends the daemon, or is no HTTP.
_LEFT_OUT = ["stopDaemon", "attach", "joinBus"]

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


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    home = tmp_path_factory.mktemp("described") / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("wait_limit = 0.1\ngrace = 0.1\n")
    with holdfast.connect(home=home) as client:
        api = Api(client)
        api.open_tcp()
        client.run("echo hello; exec cat", name="running", stdin=True)
        client.wait(client.run("echo hello", name="over").id)
        yield api
    end_instance(str(home))


@schema.parametrize()
@settings(
    max_examples=8,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_what_comes_back_is_described(case: Any, described: Api, tmp_path_factory: pytest.TempPathFactory) -> None:
    for target in _targets(case):
        if target is not None:
            case.path_parameters["id"] = target
        _tame(case, tmp_path_factory.getbasetemp())
        headers = {"Authorization": f"Bearer {described.token}"}
        response = case.call(base_url=described.url, headers=headers, timeout=90)
        case.validate_response(response, checks=_CHECKS)


def _targets(case: Any) -> list[str | None]:
    """As it was made up; and where a process is named, also one that runs and one that is over."""
    names = case.path_parameters or {}
    return [None, "running", "over"] if "id" in names and case.method != "DELETE" else [None]


def _tame(case: Any, where: Path) -> None:
    """Made-up commands are not for a shell, and nobody waits for a day."""
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
    assert {route.path for route in ROUTES if not route.is_described} == {"/mcp"}  # another protocol says what it takes
    for route in (route for route in ROUTES if route.is_described):
        operation = paths[route.path][route.method.lower()]
        assert operation["operationId"] == route.name
        assert {str(status) for status in route.replies} <= operation["responses"].keys()
    names = [route.name for route in ROUTES]
    assert len(set(names)) == len(names)


def test_the_process_object_is_whole() -> None:
    described = document()["components"]["schemas"]["Process"]
    assert set(described["properties"]) == set(PROCESS_FIELDS)
