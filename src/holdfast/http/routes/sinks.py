"""/api/v1/sinks: the ways to the outside."""

from __future__ import annotations

from holdfast.http.answers import Answer, json_answer
from holdfast.http.request import Request
from holdfast.http.schemas import ANYTHING, flag, integer, maybe, obj, text
from holdfast.http.table import JSON, Body, Parameter, Reply, Route, Schema

_MOST = 10_000
_MOST_IDS = 1000
_TEXT: Schema = {"type": "string"}


async def list_(request: Request) -> Answer:
    return json_answer(await request.ask("sinks", {}))


async def test(request: Request) -> Answer:
    return json_answer(await request.while_there(request.ask("sink_test", await request.fields(_TEST))))


async def dead(request: Request) -> Answer:
    return json_answer(await request.ask("sink_dead", request.query))


async def retry(request: Request) -> Answer:
    return json_answer(await request.ask("sink_retry", await request.fields(_RETRY)))


def _list_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_LIST = Route(
    "GET",
    "/api/v1/sinks",
    "listSinks",
    "Where notices go beside the inbox, and what became of them",
    {
        200: Reply(
            "The sinks",
            {JSON: obj({"sinks": _list_of(ANYTHING), "config": _TEXT, "trouble": maybe(_TEXT)})},
        )
    },
    list_,
    needs="sinks",
)

_TEST = Route(
    "POST",
    "/api/v1/sinks/test",
    "testSinks",
    "Send a test message to one sink or to all, and wait for what comes of it",
    {200: Reply("What came of it", {JSON: obj({"results": _list_of(ANYTHING)})})},
    test,
    body=Body({"name": text(256)}, "Which; all of them without.", optional=True),
    errors=(404,),
    needs="sink_test",
)

_DEAD = Route(
    "GET",
    "/api/v1/sinks/dead",
    "listDeadLetters",
    "What could not be sent and was given up, newest first",
    {200: Reply("The entries", {JSON: obj({"dead": _list_of(ANYTHING)})})},
    dead,
    query=(Parameter("limit", integer(1, _MOST), "So many of them at most."),),
    needs="sink_dead",
)

_IDS: Schema = {**_list_of(integer()), "minItems": 1, "maxItems": _MOST_IDS}

_RETRY = Route(
    "POST",
    "/api/v1/sinks/retry",
    "retryDeadLetters",
    "Send again what was given up: these entries, or all",
    {
        200: Reply(
            "Those that were there", {JSON: obj({"retried": _list_of(integer()), "unknown": _list_of(integer())})}
        )
    },
    retry,
    body=Body({"ids": _IDS, "all": flag()}, "One of ids and all."),
    needs="sink_retry",
)

ROUTES = [_LIST, _TEST, _DEAD, _RETRY]
