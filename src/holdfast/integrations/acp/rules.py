"""The protocol's rules for terminals: what a call must say, and what an answer says. No I/O."""

from __future__ import annotations

import hashlib
import os
import signal
from typing import Any, NamedTuple

#: As much is kept of the output where the agent names no limit, and at most.
USUAL_LIMIT, LARGEST_LIMIT = 1 << 20, 16 << 20
_LONGEST_ID = 4096
#: Words of JSON-RPC.
INVALID_PARAMS, NOT_FOUND, FAILED = -32602, -32002, -32000


class Refused(Exception):
    """An error as JSON-RPC has it."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def to_wire(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, **({"data": self.data} if self.data else {})}


class Wanted(NamedTuple):
    """A terminal as the agent wants it."""

    command: str | list[str]
    """A text goes through the shell, a list does not."""
    env: dict[str, str]
    cwd: str | None
    limit: int


def session_of(params: dict[str, Any]) -> str:
    """The holdfast session of the agent's: one of its own for each."""
    found = params.get("sessionId")
    if not isinstance(found, str) or not found or len(found) > _LONGEST_ID:
        raise Refused(INVALID_PARAMS, "sessionId is no text")
    is_plain = len(found) <= 200 and found.isascii() and found.isprintable() and " " not in found
    return f"acp-{found if is_plain else hashlib.sha256(found.encode(errors='replace')).hexdigest()}"


def terminal_of(params: dict[str, Any]) -> str:
    found = params.get("terminalId")
    if not isinstance(found, str):
        raise Refused(INVALID_PARAMS, "terminalId is no text")
    return found


def wanted(params: dict[str, Any]) -> Wanted:
    """Raises Refused for what is no terminal."""
    command, args = params.get("command"), params.get("args")
    if not isinstance(command, str) or not command.strip():
        raise Refused(INVALID_PARAMS, "command is no text, or empty")
    args = [] if args is None else args
    if not isinstance(args, list) or not all(isinstance(word, str) for word in args):
        raise Refused(INVALID_PARAMS, "args is no list of texts")
    return Wanted([command, *args] if args else command, _env(params), _cwd(params), _limit(params))


def _env(params: dict[str, Any]) -> dict[str, str]:
    rows = params.get("env") or []
    if not isinstance(rows, list):
        raise Refused(INVALID_PARAMS, "env is no list")
    env = {}
    for row in rows:
        name, value = (row.get("name"), row.get("value")) if isinstance(row, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(value, str):
            raise Refused(INVALID_PARAMS, "env has an entry without name and value")
        env[name] = value
    return env


def _cwd(params: dict[str, Any]) -> str | None:
    cwd = params.get("cwd")
    if cwd is None:
        return None
    if not isinstance(cwd, str) or not os.path.isabs(cwd):
        raise Refused(INVALID_PARAMS, "cwd is no absolute path")
    return cwd


def _limit(params: dict[str, Any]) -> int:
    limit = params.get("outputByteLimit")
    if limit is None:
        return USUAL_LIMIT
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise Refused(INVALID_PARAMS, "outputByteLimit is no number from 0 on")
    return min(limit, LARGEST_LIMIT)


def last_bytes(text: str, limit: int) -> str:
    """The end of the text that is at most so many bytes of UTF-8, and begins with a whole character."""
    data = text.encode(errors="replace")
    if len(data) <= limit:
        return data.decode()
    return data[len(data) - limit :].decode(errors="ignore") if limit else ""


def exit_status(exit_code: int | None, number: int | None) -> dict[str, Any]:
    """Of one that has ended. What nobody knows is null."""
    return {"exitCode": exit_code if number is None else None, "signal": _signal_name(number)}


def _signal_name(number: int | None) -> str | None:
    if number is None:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
