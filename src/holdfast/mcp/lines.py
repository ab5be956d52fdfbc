"""Lines of JSON from a client: halves of characters, at which the SDK's reader stops, become U+FFFD."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from io import TextIOWrapper
from typing import Any

import anyio

#: An escape, as a whole: a pair of halves, one half, or any other.
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][\da-fA-F]{2}(\\u[dD][c-fC-F][\da-fA-F]{2})?|(u[dD][c-fC-F][\da-fA-F]{2})|.)")


def mended(line: str) -> str:
    return _ESCAPE.sub(_whole, line) if "\\ud" in line or "\\uD" in line else line


def _whole(found: re.Match[str]) -> str:
    escape = found.group()
    is_half = found.group(2) is not None or (len(escape) == 6 and escape[2] in "dD" and found.group(1) is None)
    return "\\ufffd" if is_half and escape[1] == "u" else escape


class StdinLines:
    """What the SDK's stdio transport reads from, in place of stdin itself."""

    def __init__(self) -> None:
        # A thread may read from it until the process ends, so it is never closed.
        self._file: Any = anyio.wrap_file(TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace"))

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._file:
            yield mended(line)
