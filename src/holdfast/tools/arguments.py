"""The arguments of a model: coerced where the meaning is clear, else refused. No I/O."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.tools.answers import ToolRefusal

_YES = frozenset({"true", "yes", "1", "on"})
_NO = frozenset({"false", "no", "0", "off", "", "null", "none"})
#: A longer command cannot be passed to a shell.
LONGEST_COMMAND = 128 * 1024 - 1
LONGEST_DATA = 1 << 20
_LONGEST_NAME = 4096
_MOST_PATTERNS = 100
_MOST_IDS = 100
#: The largest whole number that JSON carries exactly everywhere.
LARGEST_NUMBER = (1 << 53) - 1

ACTIONS = (
    *("list", "poll", "log", "wait", "kill", "write", "submit", "close"),
    *("screen", "search", "signal", "resize", "restart", "transfer", "inbox", "ack"),
)
_AN_OBJECT = "pass an object that fits the schema"
_ORDER = {
    "terminal": (
        *("command", "background", "timeout", "workdir", "pty", "notify_on_complete", "watch_patterns"),
        "check_interval",
    ),
    "process": ("action", "session_id", "data", "timeout", "offset", "limit"),
}
#: Actions on the session, not on one process.
_WITHOUT_PROCESS = frozenset({"list", "inbox", "ack"})


class TerminalCall(NamedTuple):
    command: str
    background: bool
    timeout: float | None
    workdir: str | None
    pty: bool
    notify: bool
    watch: list[str]
    check_interval: float | None
    sandbox: bool | None
    """Not in the schema: a note names it to a model whose commands run in a sandbox."""
    notes: list[str]


class ProcessCall(NamedTuple):
    action: str
    ids: list[str]
    data: str | None
    timeout: float | None
    offset: int | None
    limit: int | None
    notes: list[str]


def parse(arguments: object) -> Mapping[str, object]:
    """The arguments of a call, which may come as JSON text. Raises ToolRefusal."""
    arguments = plain(arguments)
    if isinstance(arguments, (str, bytes, bytearray)):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            raise _bad("arguments", "are not JSON", _AN_OBJECT) from None
    if arguments is None:
        return {}
    if not isinstance(arguments, Mapping):
        raise _bad("arguments", f"must be an object, not {shown(arguments)}", _AN_OBJECT)
    return {str.__str__(key): plain(value) for key, value in arguments.items() if isinstance(key, str)}


def plain(value: object) -> object:
    """A plain str, also of an instance of a subclass."""
    return str.__str__(value) if isinstance(value, str) else value


def named(tool: str, values: Sequence[object], arguments: Mapping[str, object]) -> dict[str, object]:
    """Arguments by name, of which some were given by position. None counts as not given."""
    order = _ORDER.get(tool, ())
    given = dict(zip(order, values, strict=False)) | dict(arguments)
    if len(values) > len(order):
        given["too_many"] = True
    return {name: value for name, value in given.items() if value is not None}


def read_terminal(given: Mapping[str, object]) -> TerminalCall:
    """Raises ToolRefusal."""
    command = text(given, "command", LONGEST_COMMAND)
    if command is None or not command.strip():
        raise ToolRefusal("bad_arguments", "the command is missing", "give a shell command as `command`")
    return TerminalCall(
        command,
        background=flag(given, "background"),
        timeout=seconds(given, "timeout"),
        workdir=text(given, "workdir", _LONGEST_NAME) or None,
        pty=flag(given, "pty"),
        notify=flag(given, "notify_on_complete"),
        watch=_texts(given, "watch_patterns"),
        check_interval=seconds(given, "check_interval") or None,
        sandbox=flag(given, "sandbox") if given.get("sandbox") is not None else None,
        notes=_unknown(given, TerminalCall._fields, ("notify_on_complete", "watch_patterns")),
    )


def read_process(given: Mapping[str, object]) -> ProcessCall:
    """Raises ToolRefusal."""
    action = (text(given, "action", 40) or "").strip().lower()
    if action not in ACTIONS:
        what = f"no action {shown(action)}" if action else "the action is missing"
        raise ToolRefusal("bad_arguments", what, f"one of: {', '.join(ACTIONS)}")
    ids = _ids(given.get("session_id"))
    if not ids and action not in _WITHOUT_PROCESS:
        raise ToolRefusal(
            "bad_arguments", f"{action} needs a session_id", "process(action='list') shows your processes"
        )
    return ProcessCall(
        action,
        ids,
        data=text(given, "data", LONGEST_DATA),
        timeout=seconds(given, "timeout"),
        offset=_whole(given, "offset"),
        limit=_whole(given, "limit"),
        notes=_unknown(given, ProcessCall._fields, ("session_id",)),
    )


def text(given: Mapping[str, object], name: str, longest: int) -> str | None:
    """A string; a number becomes its digits. None when it is not given."""
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and _is_small(value):
        value = str(value)
    if not isinstance(value, str):
        raise _bad(name, f"must be a text, not {shown(value)}")
    if len(value.encode(errors="surrogatepass")) > longest:
        raise _bad(name, f"is longer than {longest} bytes", "write it to a file and name that")
    if "\0" in value and name != "data":
        raise _bad(name, "must not hold NUL characters")
    return value


def flag(given: Mapping[str, object], name: str) -> bool:
    value = given.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    if isinstance(value, int) and value in (0, 1):
        return value == 1
    if isinstance(value, str) and (word := value.strip().lower()) in _YES | _NO:
        return word in _YES
    raise _bad(name, f"must be true or false, not {shown(value)}")


def seconds(given: Mapping[str, object], name: str) -> float | None:
    """At least 0; may be infinite."""
    value = _number(given, name)
    if value is None:
        return None
    if math.isnan(value) or value < 0:
        raise _bad(name, f"must be a number of seconds from 0 on, not {shown(given[name])}")
    return value


def _whole(given: Mapping[str, object], name: str) -> int | None:
    value = _number(given, name)
    if value is None:
        return None
    if not math.isfinite(value) or abs(value) > LARGEST_NUMBER:
        raise _bad(name, f"must be a whole number, not {shown(given[name])}")
    return int(value)


def _number(given: Mapping[str, object], name: str) -> float | None:
    value = given.get(name)
    if isinstance(value, str) and not value:
        value = None
    if value is None:
        return None
    if isinstance(value, str) and len(value) <= 40:
        try:
            return float(value)
        except ValueError:
            raise _bad(name, f"must be a number, not {shown(value)}") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _bad(name, f"must be a number, not {shown(value)}")
    return float(value) if _is_small(value) else math.inf if value > 0 else -math.inf


def _texts(given: Mapping[str, object], name: str) -> list[str]:
    """A list of texts; one text is a list of one, and a list may come as JSON."""
    value = given.get(name)
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = [value]
    if value is None:
        return []
    if isinstance(value, str):
        value = [value] if value else []
    if not isinstance(value, (list, tuple)) or not all(isinstance(one, str) and one for one in value):
        raise _bad(name, "must be a list of texts that are not empty")
    if len(value) > _MOST_PATTERNS:
        raise _bad(name, f"has more than {_MOST_PATTERNS} entries")
    return [str.__str__(one) for one in value]


def _ids(value: object) -> list[str]:
    """Process ids: one, a list, or several with commas. An integer is the digits of one."""
    if value is None:
        return []
    several = value if isinstance(value, (list, tuple)) else [value]
    if len(several) > _MOST_IDS:
        raise _bad("session_id", f"names more than {_MOST_IDS} processes")
    found: list[str] = []
    for one in several:
        named = text({"session_id": plain(one)}, "session_id", _LONGEST_NAME) or ""
        found += [word.strip() for word in named.split(",")]
    return list(dict.fromkeys(word for word in found if word))


def _unknown(given: Mapping[str, object], known: tuple[str, ...], also: tuple[str, ...]) -> list[str]:
    names = [name for name in given if name not in known and name not in also and name != "session"]
    return [f"unknown arguments were ignored: {', '.join(map(_brief, names[:5]))}"] if names else []


def shown(value: object) -> str:
    """Any value, briefly, for a message."""
    if isinstance(value, str):
        return repr(_brief(value))
    if value is None or isinstance(value, bool) or (isinstance(value, (int, float)) and _is_small(value)):
        return repr(value)
    return "such a number" if isinstance(value, (int, float)) else f"a {type(value).__name__}"[:40]


def _brief(value: str) -> str:
    return value if len(value) <= 40 else f"{value[:40]}…"


def _is_small(value: int | float) -> bool:
    return not isinstance(value, int) or value.bit_length() <= 1000


def _bad(name: str, what: str, next: str | None = None) -> ToolRefusal:
    return ToolRefusal("bad_arguments", f"{name} {what}", next or f"call again with another {name}")
