"""Session handles: names that nobody guesses, by which a conversation goes on after a restart. No I/O."""

from __future__ import annotations

import re
import secrets

_SHAPE = re.compile(r"mcp-[0-9a-f]{16}")
#: Longer than any handle; what is longer need not be looked at.
_LONGEST = 64


def new_handle() -> str:
    return f"mcp-{secrets.token_hex(8)}"


def is_handle(text: str) -> bool:
    """Whether it looks like one that was made here. Only such a name opens a session that is not the server's own."""
    return len(text) <= _LONGEST and _SHAPE.fullmatch(text) is not None
