"""Lines of JSON from a client, before the SDK reads them.

Halves of characters, at which its reader stops, become U+FFFD. What is no message, which it passes over, is answered.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from io import TextIOWrapper
from typing import Any

import anyio
from mcp import types
from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError

#: An escape, as a whole: a pair of halves, one half, or any other.
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][\da-fA-F]{2}(\\u[dD][c-fC-F][\da-fA-F]{2})?|(u[dD][c-fC-F][\da-fA-F]{2})|.)")


def mended(line: str) -> str:
    return _ESCAPE.sub(_whole, line) if "\\ud" in line or "\\uD" in line else line


def _whole(found: re.Match[str]) -> str:
    escape = found.group()
    is_half = found.group(2) is not None or (len(escape) == 6 and escape[2] in "dD" and found.group(1) is None)
    return "\\ufffd" if is_half and escape[1] == "u" else escape


def objection(line: str) -> types.JSONRPCError | None:
    """What is answered to a line that is no message of the protocol; None for one that is."""
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as wrong:
        if wrong.errors(include_input=False, include_url=False)[0]["type"] == "json_invalid":
            return _error(None, types.PARSE_ERROR, "this line is no JSON")
        return _not_a_message(_loaded(line))
    if isinstance(message, types.JSONRPCNotification) and "id" in (_loaded(line) or ()):
        return _error(None, types.INVALID_REQUEST, "an id is a text or a whole number")
    return None


def _loaded(line: str) -> dict[str, Any] | None:
    """The object; None for anything else, and for one that Python does not read, such as for its long numbers."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _not_a_message(found: dict[str, Any] | None) -> types.JSONRPCError:
    """The id is the client's own unless this was to answer a request of ours."""
    number = found.get("id") if found and ("method" in found or not found.keys() & {"result", "error"}) else None
    is_usable = isinstance(number, (int, str)) and not isinstance(number, bool)
    what = "no message of JSON-RPC 2.0: `method` is a text, `params` an object"
    return _error(number if is_usable else None, types.INVALID_REQUEST, what)


def _error(number: int | str | None, code: int, what: str) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=number, error=types.ErrorData(code=code, message=what))


class StdinLines:
    """What the SDK's stdio transport reads from, in place of stdin itself. `object_to` answers what is no message."""

    def __init__(self) -> None:
        # A thread may read from it until the process ends, so it is never closed.
        self._file: Any = anyio.wrap_file(TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace"))
        self.object_to: Callable[[types.JSONRPCError], Awaitable[None]] | None = None

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._file:
            if not line.strip():
                continue
            whole = mended(line)
            if self.object_to is None or (wrong := objection(whole)) is None:
                yield whole
            else:
                await self.object_to(wrong)
