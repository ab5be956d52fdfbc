"""/api/v1/sessions: who there is, what runs for one, giving it another name, and its end."""

from __future__ import annotations

from holdfast.http.answers import Answer, json_answer
from holdfast.http.request import Request
from holdfast.http.schemas import ANYTHING, SESSION, flag, integer, obj, ref, text, texts
from holdfast.http.table import JSON, Body, Reply, Route


async def list_(request: Request) -> Answer:
    return json_answer(await request.ask("sessions", {}))


async def digest(request: Request) -> Answer:
    return json_answer(await request.ask("digest", {"session": request.parameters["session"]}))


async def rename(request: Request) -> Answer:
    asked = await request.fields(_RENAME)
    return json_answer(await request.ask("rename_session", {**asked, "from": request.parameters["session"]}))


async def end(request: Request) -> Answer:
    asked = await request.fields(_END)
    return json_answer(await request.ask("end_session", {**asked, "session": request.parameters["session"]}))


_RENAME = Route(
    "POST",
    "/api/v1/sessions/{session}/rename",
    "renameSession",
    "Give a session another name: its processes, its notifications, and whatever still comes under the old one",
    {200: Reply("Those that moved", {JSON: obj({"processes": texts("Ids."), "notifications": texts("Ids.")})})},
    rename,
    body=Body({"to": SESSION}, "The new name.", required=("to",)),
    errors=(507,),
    needs="rename_session",
)

_ENDED = obj(
    {
        "results": {"type": "array", "items": ref("KillResult")},
        "passed": {"type": "array", "items": obj({"id": text(), "to": text()})},
        "left": texts("Those that go on as before."),
        "notifications": texts("Those that passed with them."),
    }
)

_END = Route(
    "POST",
    "/api/v1/sessions/{session}/end",
    "endSession",
    "End what was to live as long as the session; what goes on passes to its parent",
    {200: Reply("What became of it", {JSON: _ENDED})},
    end,
    body=Body(
        {
            "to": {**SESSION, "description": "The session that gets what goes on, in place of the parent."},
            "keep": {**flag(), "description": "What goes on stays with the session."},
        },
        "Who gets what goes on.",
        optional=True,
    ),
    errors=(507,),
)

ROUTES = [
    Route(
        "GET",
        "/api/v1/sessions",
        "listSessions",
        "Sessions with processes that run or are remembered, or with something to be told",
        {200: Reply("The sessions", {JSON: obj({"sessions": {"type": "array", "items": ref("Session")}})})},
        list_,
    ),
    Route(
        "GET",
        "/api/v1/sessions/{session}/digest",
        "getDigest",
        "What still runs for a session, in a few lines",
        {
            200: Reply(
                "`text` is for a model",
                {
                    JSON: obj(
                        {
                            "text": {"type": "string"},
                            "processes": {"type": "array", "items": {"allOf": [ref("Process"), ANYTHING]}},
                            "pending": integer(),
                        }
                    )
                },
            )
        },
        digest,
        needs="digest",
    ),
    _RENAME,
    _END,
]
