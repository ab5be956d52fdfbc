"""/api/v1/processes: list and start; one of them: look at it, forget it."""

from __future__ import annotations

import os

from holdfast.daemon.room import Message
from holdfast.errors import BadValue
from holdfast.http import keys
from holdfast.http.answers import Answer, json_answer, nothing
from holdfast.http.request import Request
from holdfast.http.schemas import ANYTHING, SESSION, START_FIELDS, flag, integer, maybe, obj, ref, text, texts
from holdfast.http.table import JSON, Body, Parameter, Reply, Route, Schema
from holdfast.model.ids import ProcessId

_PAGE = 1000
_MOST = 10_000


async def list_(request: Request) -> Answer:
    return json_answer(await request.ask("list", {"limit": _PAGE, **request.query}))


async def start(request: Request) -> Answer:
    """201 for a command that runs now; 200 where it was there before: the same key, the same id, or a reused twin."""
    ask = await request.fields(START)
    key = request.header("idempotency-key")
    if key is not None:
        if ask.get("id") is not None:
            raise BadValue("either an id or an Idempotency-Key, not both")
        ask |= {"id": keys.process_id(key), "fingerprint": keys.fingerprint(ask)}
    is_new = request.room.registry.get(ProcessId(str(ask.get("id")))) is None
    answer = await request.while_there(request.ask("start", _wire(ask)))
    process = answer["process"]
    if key is not None:
        keys.check(request.room.registry.get(ProcessId(ask["id"])), ask["fingerprint"])
    is_new = is_new and process["id"] == ask["id"]
    where = (("location", f"/api/v1/processes/{process['id']}"),)
    return json_answer({**process, "notes": answer["notes"]}, 201 if is_new else 200, where)


def _wire(ask: Message) -> Message:
    """The body in the words of the operation."""
    ask["id"] = ask.get("id") or keys.new_id()
    ask["grant"], ask["env"] = ask.pop("env", None), ask.pop("caller_env", None)
    if ask.get("cwd") is None:
        ask["cwd"] = os.path.expanduser("~")
    return ask


async def inspect(request: Request) -> Answer:
    answer = await request.ask("inspect", {**request.query, "process": request.id})
    if answer.get("unchanged"):
        return json_answer(answer)
    tree = {"tree": answer["tree"]} if request.query.get("tree") else {}
    return json_answer({**answer["process"], "seen": answer["seen"], **tree})


async def forget(request: Request) -> Answer:
    await request.ask("remove", {"processes": [request.id]})
    return nothing()


_LIST = Route(
    "GET",
    "/api/v1/processes",
    "listProcesses",
    "The running processes, oldest first; with `all`, those that ended and are remembered, too",
    {
        200: Reply(
            "A page", {JSON: obj({"processes": {"type": "array", "items": ref("Process")}, "next": maybe(text())})}
        )
    },
    list_,
    query=(
        Parameter("all", flag(), "Also those that have ended."),
        Parameter("session", SESSION, "Only those of this session."),
        Parameter("task", SESSION, "Only those of this task."),
        Parameter("used", flag(True), "Also what they use: memory, processor time, ports."),
        Parameter("limit", integer(1, _MOST, default=_PAGE), "At most so many on a page."),
        Parameter(
            "after", text(64), "The `next` of the page before. Nothing is shown twice or left out between pages."
        ),
    ),
)

_STARTED = {"allOf": [ref("Process"), obj({"notes": texts("What the daemon has to say about it.")})]}
_TREE: Schema = {"type": ["array", "null"], "items": ANYTHING, "description": "With `tree`; null when it is not known."}
_LOOKED: Schema = {
    "anyOf": [
        {"allOf": [ref("Process"), obj({"seen": text(), "tree": _TREE}, ("seen",))]},
        obj({"unchanged": {"const": True}}),
    ]
}
_LOCATION = {"Location": "Where the process is to be found."}

START = Route(
    "POST",
    "/api/v1/processes",
    "startProcess",
    "Start a command. Answers when it runs",
    {
        201: Reply("It runs", {JSON: _STARTED}, _LOCATION),
        200: Reply(
            "It was started before: by the same key or id, or as a twin that is reused", {JSON: _STARTED}, _LOCATION
        ),
    },
    start,
    headers=(
        Parameter(
            "Idempotency-Key",
            text(keys.LONGEST, minLength=1, pattern="^[!-~]+$"),
            "The same key is the same process, for as long as it is remembered; with another body it is refused.",
            "header",
        ),
    ),
    body=Body(START_FIELDS, "How to start it.", one_of=("command", "argv")),
    errors=(409, 422, 507),
)

ROUTES = [
    _LIST,
    START,
    Route(
        "GET",
        "/api/v1/processes/{id}",
        "getProcess",
        "All that is known of a process",
        {200: Reply("The process; `unchanged` where it stands as it was `seen`", {JSON: _LOOKED})},
        inspect,
        query=(
            Parameter("seen", text(100), "The `seen` of the answer before: what has not changed is not told again."),
            Parameter("tree", flag(), "Also everyone who belongs to it, as `tree`."),
        ),
    ),
    Route(
        "DELETE",
        "/api/v1/processes/{id}",
        "removeProcess",
        "Forget an ended process with its output",
        {204: Reply("Forgotten", {})},
        forget,
    ),
]
