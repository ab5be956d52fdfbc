"""The daemon's operations as HTTP requests, and HTTP answers as what the operations answer. No I/O."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from holdfast.errors import Unsupported
from holdfast.wire import light_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from holdfast.wire.frames import Message

    #: Method, path with query, and the fields of the body (None for none).
    Words: TypeAlias = tuple[str, str, Message | None]

_API = "/api/v1"
EVENTS = "text/event-stream"


def request_words(op: str, arguments: Message) -> Words:
    """Raises Unsupported for what is not to be had over HTTP."""
    say = _SAY.get(op)
    if say is None:
        raise Unsupported(f"{op} cannot be had over HTTP", next="use the daemon's socket: unset HOLDFAST_URL")
    return say({name: value for name, value in arguments.items() if value is not None})


def answer_value(op: str, value: Message) -> Message:
    """What the operation answers, of what HTTP answered."""
    if op == "start":
        notes = value.pop("notes", [])
        return {"process": value, "notes": notes}
    if op == "inspect" and not value.get("unchanged"):
        return {"seen": value.pop("seen", None), "tree": value.pop("tree", None), "process": value}
    if op in ("approve", "deny", "approval_password"):
        return {"approval": value}
    return value


def accepted(op: str, arguments: Message) -> str:
    is_stream = op in ("logs", "events", "notices") or (op == "approvals" and bool(arguments.get("follow")))
    return EVENTS if is_stream else "application/json"


def _process(ask: Message, rest: str = "") -> str:
    return f"{_API}/processes/{quote(str(ask.pop('process', '')), safe='', errors='replace')}{rest}"


def _with_query(path: str, query: Message) -> str:
    said = {name: light_json.dumps(value) if isinstance(value, bool) else value for name, value in query.items()}
    return f"{path}?{urlencode(said, errors='replace')}" if said else path


def _start(ask: Message) -> Words:
    caller, grant = ask.pop("env", None), ask.pop("grant", None)
    named = {"caller_env": caller, "env": grant}
    return "POST", f"{_API}/processes", {**ask, **{name: value for name, value in named.items() if value is not None}}


def _logs(ask: Message) -> Words:
    ask.setdefault("follow", False)
    return "GET", _with_query(_process(ask, "/log"), {**ask, "view": "raw", "until": "closed"}), None


def _session(ask: Message, rest: str, key: str = "session") -> str:
    return f"{_API}/sessions/{quote(str(ask.pop(key, '')), safe='', errors='replace')}{rest}"


def _inbox(ask: Message) -> Words:
    return "GET", _with_query(_session(ask, "/inbox"), ask), None


def _approvals(ask: Message) -> Words:
    query = {name: value for name, value in ask.items() if name != "follow"}
    return "GET", _with_query(f"{_API}/approvals", query), None


def _approval(rest: str) -> Callable[[Message], Words]:
    def say(ask: Message) -> Words:
        return "POST", f"{_API}/approvals/{quote(str(ask.pop('id', '')), safe='', errors='replace')}{rest}", ask

    return say


def _post(rest: str) -> Callable[[Message], Words]:
    return lambda ask: ("POST", _process(ask, rest), ask)


_SAY: dict[str, Callable[[Message], Words]] = {
    "start": _start,
    "list": lambda ask: ("GET", _with_query(f"{_API}/processes", ask), None),
    "inspect": lambda ask: ("GET", _with_query(_process(ask), ask), None),
    "logs": _logs,
    "wait": lambda ask: ("POST", f"{_API}/wait", ask),
    "kill": lambda ask: ("POST", f"{_API}/kill", ask),
    "remove": lambda ask: ("POST", f"{_API}/remove", ask),
    "send": _post("/stdin"),
    "resize": _post("/resize"),
    "restart": _post("/restart"),
    "attached": _post("/attached"),
    "screen": lambda ask: ("GET", _with_query(_process(ask, "/screen"), ask), None),
    "search": lambda ask: ("GET", _with_query(_process(ask, "/search"), ask), None),
    "top": lambda ask: ("GET", _with_query(f"{_API}/top", ask), None),
    "events": lambda ask: ("GET", _with_query(f"{_API}/events", {"follow": False, **ask}), None),
    "publish": lambda ask: ("POST", f"{_API}/events", ask),
    "redact": lambda ask: ("POST", f"{_API}/redact", ask),
    "sessions": lambda ask: ("GET", f"{_API}/sessions", None),
    "sinks": lambda ask: ("GET", f"{_API}/sinks", None),
    "sink_test": lambda ask: ("POST", f"{_API}/sinks/test", ask),
    "sink_dead": lambda ask: ("GET", _with_query(f"{_API}/sinks/dead", ask), None),
    "sink_retry": lambda ask: ("POST", f"{_API}/sinks/retry", ask),
    "approvals": _approvals,
    "approve": _approval("/approve"),
    "deny": _approval("/deny"),
    "approval_shown": _approval("/shown"),
    "approval_password": _approval("/password"),
    "audit": lambda ask: ("GET", _with_query(f"{_API}/audit", ask), None),
    "end_session": lambda ask: ("POST", _session(ask, "/end"), ask),
    "rename_session": lambda ask: ("POST", _session(ask, "/rename", "from"), ask),
    "digest": lambda ask: ("GET", _session(ask, "/digest"), None),
    "inbox": _inbox,
    "notices": _inbox,
    "ack": lambda ask: ("POST", f"{_API}/ack", ask),
    "transfer": _post("/transfer"),
    "status": lambda ask: ("GET", f"{_API}/daemon", None),
    "doctor": lambda ask: ("GET", f"{_API}/daemon/doctor", None),
    "stop": lambda ask: ("POST", f"{_API}/daemon/stop", None),
}
