"""What can be done to one process: wait for it, end it, write to it, resize it."""

from __future__ import annotations

from base64 import b64encode

from holdfast.client.signals import signal_number
from holdfast.daemon import values
from holdfast.daemon.room import Message
from holdfast.errors import BadValue
from holdfast.http.answers import Answer, json_answer, nothing
from holdfast.http.negotiate import media_of
from holdfast.http.request import OCTETS, Request
from holdfast.http.schemas import (
    ANYTHING,
    ASKING_FIELDS,
    KILL_FIELDS,
    SESSION,
    choice,
    flag,
    integer,
    maybe,
    number,
    obj,
    ref,
    text,
    texts,
)
from holdfast.http.table import JSON, Body, Parameter, Reply, Route, Schema

_WAITED_FIELDS = {
    "timed_out": {"type": "boolean"},
    "waited": {"type": "number"},
    "clamped_to": maybe({"type": "number"}),
}
MATCHES: Schema = {
    "type": "object",
    "additionalProperties": ANYTHING,
    "description": "With until=match: of each process that wrote one, the first line that matched.",
}


async def wait(request: Request) -> Answer:
    return await _wait(request, request.query)


async def wait_by_post(request: Request) -> Answer:
    return await _wait(request, await request.fields(_WAIT_BY_POST))


async def _wait(request: Request, asked: Message) -> Answer:
    process = request.find(request.id)
    answer = await request.while_there(request.ask("wait", {**asked, "processes": [process.id]}))
    processes, done = answer.pop("processes"), answer.pop("done")
    shown = processes[0] if processes else request.room.show(process)
    return json_answer({"process": shown, "done": bool(done), **answer})


async def kill(request: Request) -> Answer:
    asked = with_signal(await request.fields(_KILL))
    answer = await request.ask("kill", {**asked, "processes": [request.id]})
    return json_answer(answer["results"][0])


def with_signal(asked: Message) -> Message:
    """The signal as a number. Raises BadValue."""
    signal = asked.get("signal")
    if isinstance(signal, str):
        asked["signal"] = signal_number(values.checked_text(signal, "signal", 80))
    return asked


async def stdin(request: Request) -> Answer:
    if media_of(request.header("content-type")) == OCTETS:
        asked = {**request.query, "data": b64encode(await request.body()).decode()}
    else:
        if request.query:
            raise BadValue("with a JSON body, all is said in it", next=f"or send {OCTETS}")
        asked = _with_text(await request.fields(_STDIN))
    return json_answer(await request.while_there(request.ask("send", {**asked, "process": request.id})))


def _with_text(asked: Message) -> Message:
    plain = asked.pop("text", None)
    if plain is None:
        return asked
    if asked.get("data") is not None:
        raise BadValue("either text or data, not both")
    if not isinstance(plain, str):
        raise BadValue("text must be a text")
    try:
        return {**asked, "data": b64encode(plain.encode(errors="surrogateescape")).decode()}
    except UnicodeEncodeError:
        raise BadValue("text contains half a character") from None


async def screen(request: Request) -> Answer:
    return json_answer(await request.ask("screen", {**request.query, "process": request.id}))


async def restart(request: Request) -> Answer:
    asked = {**await request.fields(_RESTART), "process": request.id}
    return json_answer(await request.while_there(request.ask("restart", asked)))


async def transfer(request: Request) -> Answer:
    return json_answer(await request.ask("transfer", {**await request.fields(_TRANSFER), "process": request.id}))


async def resize(request: Request) -> Answer:
    await request.ask("resize", {**await request.fields(_RESIZE), "process": request.id})
    return nothing()


async def attached(request: Request) -> Answer:
    """Until the process ends. Hanging up is how one detaches."""
    asked = {**await request.fields(_ATTACHED), "process": request.id}
    return json_answer(await request.while_there(request.ask("attached", asked)))


_WAITED = Reply(
    "It is over, or the time is",
    {
        JSON: obj(
            {"process": ref("Process"), "done": {"type": "boolean"}, **_WAITED_FIELDS, "matches": MATCHES},
            ("process", "done", *_WAITED_FIELDS),
        )
    },
)

WAIT_FIELDS: dict[str, Schema] = {
    "timeout": number(description="Seconds; for ever unless said otherwise."),
    "until": choice("exit", "output", "ready", "match", default="exit"),
    "after": integer(
        description="With until=output or match: in what follows so many bytes of output, not from now on."
    ),
    "match": text(description="With until=match: an RE2 pattern for a line of output."),
    "ignore_case": flag(),
    "or_input": number(description="With until=exit: also until one of them needs input, since later than this."),
    "consume": {**flag(True), "description": "False: an end is only looked at, and its owner told all the same."},
}
_PLACES: Schema = {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": integer()}}
#: In a body, `after` may also tell a place in each stream of each process.
WAIT_BODY: dict[str, Schema] = {
    **WAIT_FIELDS,
    "after": {
        "oneOf": [WAIT_FIELDS["after"], _PLACES],
        "description": 'As in the query; with until=match also as {"proc_…": {"out": 42}}, a place for each.',
    },
}

_WAIT_BY_POST = Route(
    "POST",
    "/api/v1/processes/{id}/wait",
    "waitForProcessByPost",
    "As GET",
    {200: _WAITED},
    wait_by_post,
    body=Body(WAIT_BODY, "What to wait for.", optional=True),
)

_KILL = Route(
    "POST",
    "/api/v1/processes/{id}/kill",
    "killProcess",
    "End a process with all that it started, politely and then by force; or send just a signal",
    {200: Reply("What became of it", {JSON: ref("KillResult")})},
    kill,
    body=Body(KILL_FIELDS, "How to end it.", optional=True),
    errors=(422,),
)

_STDIN = Route(
    "POST",
    "/api/v1/processes/{id}/stdin",
    "writeInput",
    "Write to its input",
    {
        200: Reply(
            "Written; `already_exited` when nobody is there to read",
            {
                JSON: obj(
                    {
                        "written": {"type": "integer"},
                        "accepted": maybe({"type": "integer"}),
                        "status": choice("sent", "already_exited"),
                        "process": ref("Process"),
                    }
                )
            },
        )
    },
    stdin,
    query=(
        Parameter("enter", flag(), "Bytes: press Enter after them."),
        Parameter("eof", flag(), "Bytes: close the input after them."),
        Parameter(
            "at", integer(), "Bytes: where they begin, as `accepted` said before; what is there already is not doubled."
        ),
    ),
    body=Body(
        {
            "text": text(12 << 20),
            "data": text(16 << 20, contentEncoding="base64"),
            "enter": flag(),
            "eof": flag(),
            "at": integer(),
            "secret": {
                **flag(),
                "description": "Only where nobody shows what is typed; not with Holdfast-Strict.",
            },
            "even_if_echoed": {**flag(), "description": "A secret, also where it is shown."},
            **ASKING_FIELDS,
        },
        "What to write: bytes as they are, or JSON with `text` or `data`.",
        raw=True,
    ),
)

_RESIZE = Route(
    "POST",
    "/api/v1/processes/{id}/resize",
    "resizeTerminal",
    "Give its terminal another size",
    {204: Reply("Done", {})},
    resize,
    body=Body({"cols": integer(1, 1000), "rows": integer(1, 1000)}, "The size.", required=("cols", "rows")),
)

_ATTACHED = Route(
    "POST",
    "/api/v1/processes/{id}/attached",
    "showOnTerminal",
    "Say that a terminal shows what it writes: for as long as this request lasts, that one answers what it asks",
    {200: Reply("It has ended", {JSON: obj({})})},
    attached,
    body=Body({"from": integer(description="From which byte of output on.")}, "Where it begins.", optional=True),
    needs="attached",
)

_TRANSFER = Route(
    "POST",
    "/api/v1/processes/{id}/transfer",
    "transferProcess",
    "Hand it, and what is still to be told of it, to another session",
    {
        200: Reply(
            "It is that session's",
            {JSON: obj({"process": ref("Process"), "notifications": texts("Those that are told to it now.")})},
        )
    },
    transfer,
    body=Body({"to": SESSION}, "The session.", required=("to",)),
    errors=(507,),
    needs="transfer",
)

_RESTART = Route(
    "POST",
    "/api/v1/processes/{id}/restart",
    "restartProcess",
    "Run it again as it was started",
    {200: Reply("It runs", {JSON: ANYTHING})},
    restart,
    body=Body(
        {
            "grace": KILL_FIELDS["grace"],
            "run": integer(description="Which run it is to be: asking twice does it once."),
            **ASKING_FIELDS,
        },
        "How to end the one that runs.",
        optional=True,
    ),
    errors=(422, 507),
    needs="restart",
)

ROUTES = [
    Route(
        "GET",
        "/api/v1/processes/{id}/wait",
        "waitForProcess",
        "Wait until it ends, writes something, writes what matches, or is ready",
        {200: _WAITED},
        wait,
        query=tuple(Parameter(name, schema, schema.get("description", "")) for name, schema in WAIT_FIELDS.items()),
    ),
    _WAIT_BY_POST,
    _KILL,
    _STDIN,
    _RESIZE,
    _RESTART,
    Route(
        "GET",
        "/api/v1/processes/{id}/screen",
        "getScreen",
        "What a person would see on its terminal now",
        {200: Reply("The screen", {JSON: ANYTHING})},
        screen,
        query=(Parameter("ansi", flag(), "With colours and other attributes, as escape sequences."),),
        needs="screen",
    ),
    _TRANSFER,
    _ATTACHED,
]
