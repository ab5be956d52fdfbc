"""Hyperscan, where it is installed: tells ten times as fast where a pattern may match. RE2 says whether it does.

Only patterns are handed to it that mean the same to both; with any other, RE2 does all the work. What it says of them
may be too much, never too little.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

#: Where there are more places in a block, it does not help.
_MOST_PLACES = 64
#: Larger patterns take it long to compile.
_LONGEST = 512

_COMMON = re.compile(
    r"""(?: [^\\\[\](){}*+?|.^$\x00-\x1f\ud800-\udfff]         # a character
          | [.|)\]}]
          | \((?:\?:|\?i:|(?!\?))
          | \\[dDwWsSbBt]
          | \\[!-/:-@\[-`{-~]                                   # a sign
          | \[\^?\]?(?:\\[dDwWsSt]|\\[!-/:-@\[-`{-~]|\[:[a-z]+:\]|[^\]\\\[\x00-\x1f\x7f-\U0010ffff])*\]
          | [*+?]\??
          | \{(?:[0-9]|[12][0-9])(?:,(?:[0-9]|[12][0-9])?)?\}\??
        )+""",
    re.VERBOSE,
)
_SIGNS = re.compile(r"([!-/:-@\[-`{-~])")


class Prefilter:
    """Raises ValueError where it is not there, or cannot take these patterns. Blocks; lets other threads run."""

    def __init__(self, literals: Sequence[str], expressions: Sequence[str]) -> None:
        patterns = [*map(_quoted, literals), *map(_translated, expressions)]
        self._scan, self._terminated = _database(patterns)

    def places(self, data: bytes) -> list[int] | None:
        """Behind which bytes of plain text a match may end; None when there are many."""
        found: list[int] = []

        def note(_number: int, _start: int, end: int, _flags: int, _context: object) -> bool:
            found.append(end)
            return len(found) > _MOST_PLACES

        try:
            self._scan(data, match_event_handler=note)
        except self._terminated:
            return None
        return found


def _quoted(literal: str) -> str:
    if not literal.isprintable():  # which may be meant in several ways, and is rare
        raise ValueError(literal)
    return _SIGNS.sub(r"\\\1", literal)


def _translated(expression: str) -> str:
    """The expression, with the anchors at its ends and the flag before it as they are."""
    inner = expression.removeprefix("(?i)")
    inner = inner.removeprefix("^")
    inner = inner.removesuffix("$") if not re.search(r"\\\$$", inner) else inner
    if len(expression) > _LONGEST or not _COMMON.fullmatch(inner):
        raise ValueError(expression)
    return expression


def _database(patterns: Sequence[str]) -> tuple[Any, type[Exception]]:
    try:
        import hyperscan
    except ImportError as missing:
        raise ValueError("hyperscan is not installed") from missing
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    try:
        database.compile(
            expressions=[pattern.encode() for pattern in patterns],
            ids=list(range(len(patterns))),
            elements=len(patterns),
            flags=[hyperscan.HS_FLAG_MULTILINE | hyperscan.HS_FLAG_UTF8] * len(patterns),
        )
    except hyperscan.error as refused:
        raise ValueError(str(refused)) from refused
    return database.scan, hyperscan.ScanTerminated
