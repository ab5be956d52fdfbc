"""/api/v1/processes: start a process; look at one, wait for it, end it, write to it, forget it."""

from __future__ import annotations

import hashlib
import os
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from holdfast import light_json
from holdfast.client.signals import signal_number
from holdfast.daemon.core.context import Message
from holdfast.errors import BadValue
from holdfast.http.negotiate import media_of
from holdfast.http.request import HttpRequest
from holdfast.http.responses import HttpRefusal, Response, json_response
from holdfast.http.routing import JSON, OCTETS, Flat, HeaderField, Success, operation_route
from holdfast.model.process import PREFIX, HeldProcess, ProcessId, new_id
from holdfast.ops.declare import Operation, Record, Traits, field
from holdfast.ops.processes import Inspect, Kill, Send, Wait
from holdfast.ops.records import KillResultFields
from holdfast.ops.start import Exec, Start

if TYPE_CHECKING:
    from holdfast.ops.kinds import Anything, Flag, Integer, ProcessRef, Seconds, Text
    from holdfast.ops.records import AwaitedMatchFields, ProcessFields

_REF = "An id, a name, or a unique prefix of either (of an id 4 hex digits or more)."
_LONGEST_KEY = 255


async def start(request: HttpRequest) -> Response:
    """201 for a command that runs now; 200 where it did before: the same key or id, or a process that is reused."""
    ask = await request.fields()
    key = request.header("idempotency-key")
    if key is not None:
        if ask.get("id") is not None:
            raise BadValue("either an id or an Idempotency-Key, not both")
        ask |= {"id": key_id(key, ask.get("session") or request.call().owner), "fingerprint": fingerprint(ask)}
    registry = request.context.registry
    is_new = registry.get(ProcessId(str(ask.get("id")))) is None
    reply = await request.while_connected(request.ask("start", _start_fields(ask)))
    process = reply["process"]
    if key is not None:
        _check_key(registry.get(ProcessId(ask["id"])), ask["fingerprint"])
    is_new = is_new and process["id"] == ask["id"]
    location = (("location", f"/api/v1/processes/{process['id']}"),)
    return json_response({**process, "notes": reply["notes"]}, 201 if is_new else 200, location)


async def exec_in(request: HttpRequest) -> Response:
    """201 for a command that runs now; 200 where the id was started before."""
    ask = {**await request.fields(), **request.path}
    ask["id"] = ask.get("id") or new_id()
    ask["grant"] = ask.pop("env", None)
    is_new = request.context.registry.get(ProcessId(str(ask["id"]))) is None
    reply = await request.while_connected(request.ask("exec", ask))
    location = (("location", f"/api/v1/processes/{reply['process']['id']}"),)
    return json_response({**reply["process"], "notes": reply["notes"]}, 201 if is_new else 200, location)


def _start_fields(ask: Message) -> Message:
    """The body with the names of the operation, and with defaults for what a client on the socket always gives."""
    ask["id"] = ask.get("id") or new_id()
    ask["grant"], ask["env"] = ask.pop("env", None), ask.pop("caller_env", None)
    if ask.get("cwd") is None:
        ask["cwd"] = os.path.expanduser("~")
    return ask


# An idempotency key names a process, and the process keeps the fingerprint of its request: there is no table of keys,
# and a crash loses nothing.


def key_id(key: str, session: str) -> str:
    """The id that a key of a session stands for. Raises BadValue."""
    if not 1 <= len(key) <= _LONGEST_KEY or not all("!" <= letter <= "~" for letter in key):
        what = f"an Idempotency-Key has 1 to {_LONGEST_KEY} visible ASCII characters"
        raise BadValue(what, next="use a UUID")
    named = key if session == "default" else f"{session}\0{key}"
    return PREFIX + hashlib.sha256(b"holdfast key " + named.encode()).hexdigest()[:12]


def fingerprint(body: dict[str, Any]) -> str:
    """The same for equal bodies, in any order. Raises BadValue."""
    ordered = {name: _ordered(value) for name, value in sorted(body.items()) if value is not None}
    try:
        return hashlib.sha256(light_json.dumps(ordered).encode()).hexdigest()[:32]
    except RecursionError:
        raise BadValue("the body is nested too deeply", next="see /api/v1/openapi.json") from None


def _ordered(value: Any) -> Any:
    return dict(sorted(value.items())) if isinstance(value, dict) else value


def _check_key(process: HeldProcess | None, expected: str) -> None:
    """Raises HttpRefusal where the key was given with another request before."""
    if process is not None and process.meta.fingerprint != expected:
        what = f"this Idempotency-Key stands for another request, which started {process.id}"
        raise HttpRefusal(422, "bad_value", what, next="use a new key for a new request")


async def inspect(request: HttpRequest) -> Response:
    reply = await request.ask("inspect", {**request.query, **request.path})
    if reply.get("unchanged"):
        return json_response(reply)
    more = {name: reply[name] for name in ("tree", "spec") if request.query.get(name)}
    return json_response({**reply["process"], "seen": reply["seen"], **more})


async def forget(request: HttpRequest) -> Response:
    await request.ask("remove", {"processes": [request.path["process"]]})
    return Response(204)


async def wait(request: HttpRequest) -> Response:
    process = request.find()
    ask = {**request.query, **await request.fields(), "processes": [process.id]}
    reply = await request.while_connected(request.ask("wait", ask))
    processes, done = reply.pop("processes"), reply.pop("done")
    shown = processes[0] if processes else request.context.show(process)
    return json_response({"process": shown, "done": bool(done), **reply})


async def kill(request: HttpRequest) -> Response:
    ask = {**with_signal(await request.fields()), "processes": [request.path["process"]]}
    reply = await request.while_connected(request.ask("kill", ask))
    return json_response(reply["results"][0])


async def kill_many(request: HttpRequest) -> Response:
    ask = with_signal(await request.fields())
    return json_response(await request.while_connected(request.ask("kill", ask)))


def with_signal(ask: Message) -> Message:
    """The same with the number of a signal that is given by name. Raises BadValue."""
    if isinstance(ask.get("signal"), str):
        ask["signal"] = signal_number(ask["signal"])
    return ask


async def stdin(request: HttpRequest) -> Response:
    if media_of(request.header("content-type")) == OCTETS:
        ask = {**request.query, "data": b64encode(await request.body()).decode()}
    else:
        if request.query:
            raise BadValue("with a JSON body, all fields are in it", next=f"or send {OCTETS}")
        ask = _with_text(await request.fields())
    return json_response(await request.while_connected(request.ask("send", {**ask, **request.path})))


def _with_text(ask: Message) -> Message:
    plain = ask.pop("text", None)
    if plain is None:
        return ask
    if ask.get("data") is not None:
        raise BadValue("either text or data, not both")
    return {**ask, "data": b64encode(plain.encode(errors="surrogateescape")).decode()}


def _check_signal(value: object) -> None:
    signal = Kill.FIELDS["signal"]
    signal.check(signal_number(value) if isinstance(value, str) else value)


_SIGNAL_SCHEMA = {"oneOf": [Kill.FIELDS["signal"].kind.schema(), {"type": "string", "maxLength": 20}]}


class KillOverHttp(Kill):
    """End several processes, or send them a signal: those named, of a session, of a task, or all"""

    signal: Anything = field(
        None, schema=_SIGNAL_SCHEMA, rule=_check_signal, help="Send just this signal: a number, or a name such as TERM."
    )


class KillOne(KillOverHttp):
    """End a process with everything it started, or send it a signal."""

    process: ProcessRef = field(help=_REF)

    traits = Traits(completes=True, route="POST /processes/{process}/kill", http_name="killProcess")


class WaitForOne(Wait):
    """Wait until a process ends, writes something, writes what matches, or is ready."""

    process: ProcessRef = field(help=_REF)

    class Reply(Record):
        process: ProcessFields = field()
        done: Flag = field()
        timed_out: Flag = field()
        waited: Seconds = field()
        clamped_to: Seconds | None = field(help="The daemon's limit, where it was less than the timeout.")
        matches: dict[str, AwaitedMatchFields] = field({}, help="With until=match: the first line that matched.")
        consumes: list[Text] = field((), help="Notifications that this reply stands for.")

    traits = Traits(route="POST /processes/{process}/wait", http_name="waitForProcessByPost")


class WaitByQuery(WaitForOne):
    """Wait until a process ends, writes something, writes what matches, or is ready."""

    after: Integer | None = field(
        None, help="With until=output or match: count output behind this many bytes, not from now on."
    )

    traits = Traits(route="GET /processes/{process}/wait", http_name="waitForProcess")


class SendOverHttp(Send):
    """Write to the input of a process."""

    text: Text | None = field(None, longest=12 << 20, help="A text to write, in place of `data`.")


class Forget(Operation):
    """Forget an ended process with its output."""

    process: ProcessRef = field(help=_REF)

    traits = Traits(route="DELETE /processes/{process}", http_name="removeProcess")


_STARTED = {JSON: Flat(Start.Reply, "process")}
_LOCATION = {"Location": "The path of the process."}
_UNCHANGED = {"type": "object", "properties": {"unchanged": {"const": True}}, "required": ["unchanged"]}
_KEY = HeaderField(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": _LONGEST_KEY, "pattern": "^[!-~]+$"},
    "The same key of a session is the same process, for as long as it is remembered; with another body it is refused.",
)
_STARTED_BEFORE = "It was started before: with the same key or id, or as the process that is reused"

ROUTES = [
    operation_route(
        Start,
        start,
        without=("grant", "fingerprint"),
        renamed={"env": Start.FIELDS["grant"], "caller_env": Start.FIELDS["env"]},
        defaults={"id": None, "cwd": None},
        needs_body=True,
        body={"one_of": ("command", "argv")},
        headers=(_KEY,),
        errors=(409, 422),
        replies={
            201: Success("It runs", _STARTED, _LOCATION),
            200: Success(_STARTED_BEFORE, _STARTED, _LOCATION),
        },
    ),
    operation_route(
        Inspect,
        inspect,
        replies={
            200: Success(
                "The process; `unchanged` where it is as it was `seen`",
                {JSON: (Flat(Inspect.Reply, "process"), _UNCHANGED)},
            )
        },
    ),
    operation_route(
        Exec,
        exec_in,
        without=("grant",),
        renamed={"env": Exec.FIELDS["grant"]},
        defaults={"id": None},
        needs_body=True,
        body={"one_of": ("command", "argv")},
        errors=(409, 422),
        replies={
            201: Success("It runs", _STARTED, _LOCATION),
            200: Success("It was started before, with the same id", _STARTED, _LOCATION),
        },
    ),
    operation_route(Forget, forget),
    operation_route(WaitByQuery, wait, without=("processes", "mode")),
    operation_route(WaitForOne, wait, without=("processes", "mode")),
    operation_route(
        KillOne,
        kill,
        without=("processes", "session", "task", "all"),
        errors=(422,),
        replies={200: Success("What became of it", {JSON: KillResultFields})},
    ),
    operation_route(KillOverHttp, kill_many, needs_body=True, errors=(422,)),
    operation_route(
        SendOverHttp,
        stdin,
        needs_body=True,
        body={"raw": True},
        query={name: Send.FIELDS[name] for name in ("enter", "eof", "at")},
        about="The body is bytes as they are, with the query; or JSON with `text` or `data`, without it.",
    ),
]
