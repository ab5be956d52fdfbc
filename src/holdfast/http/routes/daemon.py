"""/api/v1/daemon: the daemon about itself, and its description of all this."""

from __future__ import annotations

from holdfast.http.answers import Answer, json_answer
from holdfast.http.request import Request
from holdfast.http.schemas import ANYTHING, obj, texts
from holdfast.http.table import JSON, Reply, Route


async def status(request: Request) -> Answer:
    return json_answer(await request.ask("status", {}))


async def doctor(request: Request) -> Answer:
    return json_answer(await request.ask("doctor", {}))


async def stop(request: Request) -> Answer:
    return json_answer(await request.ask("stop", {}))


async def openapi(request: Request) -> Answer:
    from holdfast.http.openapi import document_bytes

    return Answer(200, document_bytes(), JSON)


ROUTES = [
    Route(
        "GET",
        "/api/v1/daemon",
        "getStatus",
        "How the daemon is",
        {200: Reply("Its status", {JSON: ANYTHING})},
        status,
    ),
    Route(
        "GET",
        "/api/v1/daemon/doctor",
        "getChecks",
        "What this machine offers, and what works less well for want of it",
        {200: Reply("The checks", {JSON: obj({"checks": {"type": "array", "items": ANYTHING}})})},
        doctor,
    ),
    Route(
        "POST",
        "/api/v1/daemon/stop",
        "stopDaemon",
        "Stop the daemon on purpose: detached processes go on",
        {200: Reply("It goes", {JSON: obj({"ended": texts(), "left": texts()})})},
        stop,
    ),
    Route(
        "GET",
        "/api/v1/openapi.json",
        "getDescription",
        "This description",
        {200: Reply("OpenAPI 3.1", {JSON: ANYTHING})},
        openapi,
    ),
]
