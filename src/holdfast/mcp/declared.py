"""What clients and models are told of the server: instructions, and the two tools with their schemas and hints."""

from __future__ import annotations

from typing import Any

from mcp import types

from holdfast.tools.schemas import Schema, anthropic_schemas

INSTRUCTIONS = """\
Commands run with `terminal`; `process` looks after those in the background. Start long work with background=true and \
notify_on_complete=true, then go on: you are told of its end once, in `notices` of a later answer or as a message. Do \
not poll. With nothing else to do, call process(action="wait").
The first answer carries `session`. If this server is restarted, pass it as `session` to go on with your processes."""

_TITLES = {"terminal": "Run a command", "process": "Look after background processes"}
_SESSION: Schema = {
    "type": "string",
    "description": "Handle from an earlier answer, after a restart. Else leave it out.",
}
#: The envelope: what every answer has, and what most have. Which of the others are there depends on the call.
ENVELOPE: Schema = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "description": "How it stands: running, ended, ok, unchanged, error …"},
        "reason": {"type": "string"},
        "next": {"type": "string", "description": "What to do now."},
        "is_error": {"type": "boolean"},
        "session_id": {"type": "string", "description": "The process."},
        "exit_code": {"type": "integer"},
        "output": {"type": "string"},
        "offset": {"type": "integer", "description": "Byte of the log where the next read goes on."},
        "notices": {"type": "array", "description": "News, each told once."},
        "session": {"type": "string", "description": "Handle of this session."},
    },
    "required": ["status", "reason", "next", "is_error"],
}


def tools(limit: float) -> list[types.Tool]:
    """The two tools, for calls that last so many seconds at most."""
    return [_tool(schema, limit) for schema in anthropic_schemas()]


def _tool(schema: dict[str, Any], limit: float) -> types.Tool:
    name, parameters = schema["name"], schema["input_schema"]
    parameters["properties"]["session"] = dict(_SESSION)
    timeout = parameters["properties"]["timeout"]
    timeout["description"] = {
        "terminal": f"Seconds. Foreground: window before it goes on in the background (at most {limit:g}). "
        "Background: it is killed after that.",
        "process": f"Seconds, at most {limit:g}.",
    }[name]
    return types.Tool(
        name=name,
        title=_TITLES[name],
        description=schema["description"],
        input_schema=parameters,
        output_schema=ENVELOPE,
        annotations=_hints(_TITLES[name]),
    )


def _hints(title: str) -> types.ToolAnnotations:
    """A command can do anything, and so can what is typed into one or what a restart does again."""
    return types.ToolAnnotations(
        title=title, read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
    )
