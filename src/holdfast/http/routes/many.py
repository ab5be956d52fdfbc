"""What is done to several processes at once."""

from __future__ import annotations

from holdfast.http.answers import Answer, json_answer
from holdfast.http.request import Request
from holdfast.http.routes.steering import MATCHES, WAIT_BODY, with_signal
from holdfast.http.schemas import KILL_FIELDS, SESSION, choice, flag, maybe, obj, ref, texts
from holdfast.http.table import JSON, Body, Reply, Route


async def wait(request: Request) -> Answer:
    asked = await request.fields(_WAIT)
    return json_answer(await request.while_there(request.ask("wait", asked)))


async def kill(request: Request) -> Answer:
    return json_answer(await request.ask("kill", with_signal(await request.fields(_KILL))))


async def remove(request: Request) -> Answer:
    return json_answer(await request.ask("remove", await request.fields(_REMOVE)))


_PROCESSES = texts("Ids, unique beginnings of ids, or names.")

_WAIT = Route(
    "POST",
    "/api/v1/wait",
    "waitForProcesses",
    "Wait for all or any of several processes",
    {
        200: Reply(
            "How it ended",
            {
                JSON: obj(
                    {
                        "processes": {"type": "array", "items": ref("Process")},
                        "done": texts("Those that are, in their order."),
                        "timed_out": {"type": "boolean"},
                        "waited": {"type": "number"},
                        "clamped_to": maybe({"type": "number"}),
                        "matches": MATCHES,
                    },
                    ("processes", "done", "timed_out", "waited", "clamped_to"),
                )
            },
        )
    },
    wait,
    body=Body(
        {"processes": _PROCESSES, "mode": choice("all", "any", default="all"), **WAIT_BODY},
        "What to wait for.",
        required=("processes",),
    ),
    errors=(404, 409),
)

_KILL = Route(
    "POST",
    "/api/v1/kill",
    "killProcesses",
    "End several processes, or send them a signal: those named, of a session, of a task, or all",
    {200: Reply("What became of each", {JSON: obj({"results": {"type": "array", "items": ref("KillResult")}})})},
    kill,
    body=Body(
        {"processes": _PROCESSES, "session": SESSION, "task": SESSION, "all": flag(), **KILL_FIELDS},
        "One of processes, session, task and all.",
    ),
    errors=(404, 409, 422),
)

_REMOVE = Route(
    "POST",
    "/api/v1/remove",
    "removeProcesses",
    "Forget several ended processes: all of them or none",
    {200: Reply("Those that were", {JSON: obj({"removed": texts("Ids.")})})},
    remove,
    body=Body({"processes": _PROCESSES}, "Which.", required=("processes",)),
    errors=(404, 409),
)

ROUTES = [_WAIT, _KILL, _REMOVE]
