"""/api/v1/sessions"""

from __future__ import annotations

from holdfast.http.answers import Answer, json_answer
from holdfast.http.request import Request
from holdfast.http.schemas import obj, ref, texts
from holdfast.http.table import JSON, Reply, Route


async def list_(request: Request) -> Answer:
    return json_answer(await request.ask("sessions", {}))


async def end(request: Request) -> Answer:
    return json_answer(await request.ask("end_session", {"session": request.parameters["session"]}))


_ENDED = obj({"results": {"type": "array", "items": ref("KillResult")}, "left": texts("Those that go on.")})

ROUTES = [
    Route(
        "GET",
        "/api/v1/sessions",
        "listSessions",
        "Sessions with processes that run or are remembered",
        {200: Reply("The sessions", {JSON: obj({"sessions": {"type": "array", "items": ref("Session")}})})},
        list_,
    ),
    Route(
        "POST",
        "/api/v1/sessions/{session}/end",
        "endSession",
        "End what was to live as long as the session",
        {200: Reply("What became of it", {JSON: _ENDED})},
        end,
    ),
]
