"""JSON Schemas of what goes in and comes out: what the handlers check, said for others."""

from __future__ import annotations

from typing import Any

from holdfast.http.table import Schema
from holdfast.ops.records import NOTIFICATION_FIELDS, PROCESS_FIELDS

_LARGEST = 1 << 62
_LONGEST_TEXT = 128 << 10


def text(longest: int = _LONGEST_TEXT, **more: Any) -> Schema:
    return {"type": "string", "maxLength": longest, **more}


def integer(least: int = 0, most: int = _LARGEST, **more: Any) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most, **more}


def number(**more: Any) -> Schema:
    return {"type": "number", "minimum": 0, "maximum": _LARGEST, **more}


def above_zero(**more: Any) -> Schema:
    return {"type": "number", "exclusiveMinimum": 0, "maximum": _LARGEST, **more}


def flag(default: bool = False) -> Schema:
    return {"type": "boolean", "default": default}


def choice(*words: str, **more: Any) -> Schema:
    return {"type": "string", "enum": list(words), **more}


def texts(about: str = "") -> Schema:
    return {"type": "array", "items": text(), "description": about}


def maybe(schema: Schema) -> Schema:
    """Or null, where something is not known."""
    return {**schema, "type": [schema["type"], "null"]}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def obj(fields: dict[str, Schema], required: tuple[str, ...] | None = None) -> Schema:
    return {"type": "object", "properties": fields, "required": list(fields if required is None else required)}


ANYTHING: Schema = {"type": "object"}
SESSION = text(256, minLength=1)
_NUMBER: Schema = {"type": "number"}
_INTEGER: Schema = {"type": "integer"}
_STRING: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_PIDS: Schema = {"type": "array", "items": {"type": "integer"}}

#: Fields of the process object whose form is known; whatever a release adds may be anything.
_KNOWN_FIELDS: dict[str, Schema] = {
    "id": {"type": "string", "pattern": "^proc_[0-9a-f]{12}$"},
    "name": maybe(_STRING),
    "command": _STRING,
    "argv": {"type": "array", "items": {"type": "string"}},
    "cwd": _STRING,
    "session": _STRING,
    "task": maybe(_STRING),
    "backend": _STRING,
    "pid": maybe(_INTEGER),
    "status": {"type": "string", "enum": ["running", "ended", "unreachable"]},
    "reason": maybe(_STRING),
    "exit_code": maybe(_INTEGER),
    "signal": maybe(_INTEGER),
    "started_at": maybe(_NUMBER),
    "ended_at": maybe(_NUMBER),
    "ready": maybe(_FLAG),
    "output_bytes": _INTEGER,
    "dropped_bytes": _INTEGER,
    "log_cap": _INTEGER,
    "lifetime": _STRING,
    "notify": maybe(_STRING),
    "watch": {"type": "array", "items": _STRING, "description": "Texts and patterns that its output is watched for."},
    "pty": _FLAG,
    "stdin_open": _FLAG,
    "deadline_at": maybe(_NUMBER),
    "leftover_pids": _PIDS,
    "cpu_seconds": maybe(_NUMBER),
    "rss_bytes": maybe(_INTEGER),
    "killed_by": maybe(_STRING),
    "forced": maybe(_FLAG),
    "exit_offset": maybe(_INTEGER),
    "stale": _FLAG,
    "trouble": maybe(_STRING),
    "split": _FLAG,
    "cols": maybe(_INTEGER),
    "rows": maybe(_INTEGER),
}

_KILL_RESULT = {
    "id": _STRING,
    "status": _STRING,
    "reason": maybe(_STRING),
    "forced": maybe(_FLAG),
    "survivors": _PIDS,
    "exit_code": maybe(_INTEGER),
    "signal": maybe(_INTEGER),
    "sent": maybe(_INTEGER),
}

_LOG_PAGE = {
    "id": _STRING,
    "stream": _STRING,
    "start": _INTEGER,
    "end": _INTEGER,
    "total": _INTEGER,
    "dropped": _INTEGER,
    "omitted": _INTEGER,
    "next_offset": _INTEGER,
    "closed": _FLAG,
    "note": _STRING,
    "status": _STRING,
}

_NOTIFICATION: dict[str, Schema] = {
    "id": {"type": "string", "pattern": "^note_[0-9a-f]{12}$"},
    "key": {**_STRING, "description": "The same for the same news, whatever was restarted in between."},
    "kind": _STRING,
    "process": {**maybe(_STRING), "description": "Null where it is about several."},
    "session": _STRING,
    "origin": {"type": ["object", "null"], "description": "As given when the process was started."},
    "at": _NUMBER,
    "text": {**_STRING, "description": "What a model is shown."},
    "data": {**ANYTHING, "description": "The fields of its kind."},
    "source": {"const": "system", "description": "Whatever it quotes, no user said it."},
    "summary": {**_STRING, "description": "What people are shown: one line."},
}

_PROBLEM = {
    "type": _STRING,
    "title": _STRING,
    "status": _INTEGER,
    "code": {**_STRING, "description": "As on the command line: stable, for programs."},
    "detail": {**_STRING, "description": "What went wrong, in one line."},
    "next": {**_STRING, "description": "What to try."},
}

_APPROVAL = {
    "id": {"type": "string", "pattern": "^appr_[0-9a-f]{12}$"},
    "at": _NUMBER,
    "session": _STRING,
    "backend": _STRING,
    "action": choice("start", "restart", "send"),
    "process": {**_STRING, "description": "The process that is to be started or typed into."},
    "command": _STRING,
    "cwd": _STRING,
    "rule": maybe(_STRING),
    "why": _STRING,
    "asker": {**_FLAG, "description": "Whoever made the request asks a person itself."},
    "state": choice("pending", "approved", "denied", "expired", "withdrawn"),
    "scope": maybe(_STRING),
    "decided_by": maybe(_STRING),
    "decided_at": maybe(_NUMBER),
    "reason": maybe(_STRING),
    "expires_at": maybe(_NUMBER),
    "shown_at": maybe(_NUMBER),
    "used_at": maybe(_NUMBER),
}

COMPONENTS: dict[str, Schema] = {
    "Process": obj({name: _KNOWN_FIELDS.get(name, {}) for name in PROCESS_FIELDS}),
    "KillResult": obj(_KILL_RESULT, ("id", "status", "survivors")),
    "LogPage": {
        **obj({**_LOG_PAGE, "text": _STRING, "data": {**_STRING, "contentEncoding": "base64"}}, tuple(_LOG_PAGE)),
        "description": "`text` is there with view=text, `data` with view=raw.",
    },
    "Session": obj(
        {
            "session": _STRING,
            "running": _INTEGER,
            "ended": _INTEGER,
            "first_at": maybe(_NUMBER),
            "last_at": maybe(_NUMBER),
            "pending": {**_INTEGER, "description": "Notifications that are not acknowledged."},
        }
    ),
    "Notification": obj({name: _NOTIFICATION.get(name, {}) for name in NOTIFICATION_FIELDS}),
    "Problem": obj({**_PROBLEM, "data": {"type": "object", "description": "More, for programs."}}, tuple(_PROBLEM)),
    "Approval": obj(_APPROVAL),
}

_SIGNAL: Schema = {"oneOf": [integer(1, 64), text(20)], "description": "A number, or a name such as TERM."}

KILL_FIELDS: dict[str, Schema] = {
    "signal": {**_SIGNAL, "description": "Send just this signal: a number, or a name such as TERM."},
    "grace": number(description="Seconds between the polite signal and the forced end."),
}

#: How a person is asked, where that is needed.
ASKING_FIELDS: dict[str, Schema] = {
    "asker": {**flag(), "description": "The caller asks a person itself, and is told what to ask."},
    "approval_wait": number(description="Seconds to wait for a person's answer, 300 at most."),
}

START_FIELDS: dict[str, Schema] = {
    "id": text(17, pattern="^proc_[0-9a-f]{12}$", description="Chosen by the caller: asking twice starts once."),
    "command": text(description="A text for the shell. Either this or argv."),
    "argv": {"type": "array", "items": text(), "minItems": 1, "description": "A command without a shell."},
    "shell": text(4095, description="The shell for `command`; bash unless said otherwise."),
    "cwd": text(4095, description="An absolute path; the owner's home unless said otherwise."),
    "env": {"type": "object", "additionalProperties": text(), "description": "Variables on top of the environment."},
    "caller_env": {
        "type": "object",
        "additionalProperties": text(),
        "description": "The environment of the caller, over that of a login shell.",
    },
    "clean": {**flag(), "description": "Secrets are left out of the environment, but for those in `env`."},
    "umask": integer(0, 0o777),
    "session": SESSION,
    "task": SESSION,
    "labels": {
        "type": "object",
        "additionalProperties": text(4096),
        "maxProperties": 64,
        "description": "Texts of the caller's own, kept with it.",
    },
    "parent_session": SESSION,
    "name": text(64, pattern="^[A-Za-z0-9._-]+$", description="Unique among running processes."),
    "pty": flag(),
    "cols": integer(1, 1000),
    "rows": integer(1, 1000),
    "stdin": flag(),
    "split": flag(),
    "lifetime": choice("session", "daemon", "detached"),
    "log_cap": integer(64 << 10, 1 << 50),
    "deadline": above_zero(description="Seconds."),
    "deadline_action": choice("kill", "notify"),
    "if_running": choice("reuse", "replace", "error", "allow"),
    "attached": {**flag(), "description": "Somebody is about to attach: their terminal answers what it asks."},
    "ready_log": text(4096, minLength=1, description="Ready when a line of its output matches this pattern."),
    "ready_port": integer(1, 65535, description="Ready when somebody listens on this port."),
    "ready_http": text(4096, description="Ready when this URL answers with success."),
    "ready_uptime": number(description="Ready when it has run for so many seconds."),
    "ready_timeout": above_zero(description="Seconds in which it has to be ready."),
    "stall": number(minimum=0.05, description="Seconds without output after which it counts as stalled."),
    "restart": choice("never", "on-failure", "always", default="never"),
    "restart_limit": integer(0, 1_000_000, description="At most so many restarts in a row."),
    "restart_delay": above_zero(description="Seconds before the first of them; the next ones wait longer."),
    "stop_cmd": text(minLength=1, description="A command that stops it politely, in place of the signal."),
    "success_codes": {
        "type": "array",
        "items": integer(0, 255),
        "minItems": 1,
        "description": "Exit codes of success.",
    },
    "notify": choice("any", "failure", "success", "never", description="Which of its ends notify its session."),
    "watch": {
        "type": "array",
        "items": text(4096, minLength=1),
        "maxItems": 100,
        "description": "Texts: lines that hold one notify the session. Dropped where notify is any.",
    },
    "watch_regex": {
        "type": "array",
        "items": text(4096, minLength=1),
        "maxItems": 100,
        "description": "The same for lines that match a pattern (RE2).",
    },
    "check_interval": above_zero(description="Seconds: the session is told every so often what is new."),
    "origin": {**ANYTHING, "description": "Comes back with every notification; 4 KiB of JSON at most."},
    "memory": integer(1 << 20, 1 << 50, description="Bytes that it and its descendants may use."),
    "cpus": number(minimum=0.01, maximum=100_000, description="Processors that they may use."),
    "pids": integer(1, 1 << 22, description="How many they may be."),
    "sudo": {**flag(), "description": "sudo in it asks holdfast for the password, where there is no terminal."},
    "gate": {**flag(), "description": "Judge the command first: what is dangerous needs a person's approval."},
    **ASKING_FIELDS,
}
