"""From the envelope of the tools to the answer of a call. No I/O."""

from __future__ import annotations

import json
from typing import Any

from mcp import types

from holdfast.tools.answers import Answer


def to_result(made: Answer) -> types.CallToolResult:
    """Both forms say the same: an object for programs, compact JSON for models."""
    text, value = clean(made)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=value, is_error=bool(made["is_error"])
    )


def clean(made: Answer) -> tuple[str, dict[str, Any]]:
    """As JSON and as what that says: halves of characters, which JSON-RPC cannot carry, become question marks."""
    text = json.dumps(made, ensure_ascii=False, separators=(",", ":"), default=str)
    text = text.encode(errors="replace").decode()
    value: dict[str, Any] = json.loads(text)
    return text, value


def with_note(made: Answer, note: str) -> Answer:
    return {**made, "note": f"{made['note']}; {note}" if made.get("note") else note}
