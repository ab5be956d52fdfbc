"""The events of an answer at `/mcp`: passed on one by one, so that a stream which is cut off can still be ended."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

_ENDS = (b"\r\n\r\n", b"\n\n")
_INTERNAL_ERROR = -32603
_DIED = "the MCP worker died over this request: try again; what it started goes on"


async def whole(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same, cut between events. What is left of one that never ends is dropped, unless all ends well."""
    held = bytearray()
    async for piece in pieces:
        begin = max(0, len(held) - len(_ENDS[0]) + 1)
        held += piece
        if end := max(_end(held, mark, begin) for mark in _ENDS):
            yield bytes(held[:end])
            del held[:end]
    if held:
        yield bytes(held)


def _end(held: bytearray, mark: bytes, begin: int) -> int:
    found = held.rfind(mark, begin)
    return found + len(mark) if found >= 0 else 0


def cut_off(request: bytes) -> bytes:
    """The last event of an answer to this request whose worker died: an error; nothing where nobody waits for one."""
    number = _id(request)
    if number is None:
        return b""
    error = {"jsonrpc": "2.0", "id": number, "error": {"code": _INTERNAL_ERROR, "message": _DIED}}
    return b"event: message\r\ndata: " + json.dumps(error).encode() + b"\r\n\r\n"


def _id(request: bytes) -> int | str | None:
    try:
        found = json.loads(request)
    except (ValueError, RecursionError):
        return None
    number = found.get("id") if isinstance(found, dict) and "method" in found else None
    return number if isinstance(number, (int, str)) and not isinstance(number, bool) else None
