"""Messages of the protocol: JSON-RPC, one line each. No I/O."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]

#: The longest message.
LARGEST = 256 << 20


def parsed(line: bytes) -> Message:
    """Empty for what is no message."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def to_line(message: Message) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode(errors="replace") + b"\n"
