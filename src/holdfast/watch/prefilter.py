"""Hyperscan, where it is installed: finds ten times as fast where a pattern may match. RE2 decides whether it does.

It searches for texts of which every match has to contain one. Its own expressions are not used: version 5.4 misses some
of their matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.logs.needed import Needed, needed

#: With more places in a block it does not help.
_MOST_PLACES = 64


class Prefilter:
    """Raises ValueError where it is not installed, or cannot help with these patterns. Blocks one thread."""

    def __init__(self, literals: Sequence[str], expressions: Sequence[str]) -> None:
        sought = [Needed(frozenset((text,)), False) for text in literals]
        for expression in expressions:
            found = needed(expression)
            if found is None:
                raise ValueError(f"no text is known that matches of {expression!r} contain")
            sought.append(found)
        self._has_caseless = any(one.is_caseless for one in sought)
        self._scan, self._terminated = _database(sought)

    def places(self, data: bytes) -> list[int] | None:
        """Bytes of the lines that may match; None when there are many, or it cannot decide.

        Beyond ASCII the two differ in which letters are the same: to RE2, U+212A is a `k`.
        """
        if self._has_caseless and not data.isascii():
            return None
        found: list[int] = []

        def note(_number: int, _start: int, end: int, _flags: int, _context: object) -> bool:
            found.append(end - 1)
            return len(found) > _MOST_PLACES

        try:
            self._scan(data, match_event_handler=note)
        except self._terminated:
            return None
        return found


def _database(sought: Sequence[Needed]) -> tuple[Any, type[Exception]]:
    try:
        import hyperscan
    except ImportError as missing:
        raise ValueError("hyperscan is not installed") from missing
    texts = sorted({(text.encode(), one.is_caseless) for one in sought for text in one.texts})
    if not all(text for text, _ in texts):
        raise ValueError("an empty text is everywhere")
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    try:
        database.compile(
            expressions=[text for text, _ in texts],
            ids=list(range(len(texts))),
            elements=len(texts),
            flags=[hyperscan.HS_FLAG_CASELESS if is_caseless else 0 for _, is_caseless in texts],
            literal=True,
        )
    except hyperscan.error as refused:
        raise ValueError(str(refused)) from refused
    return database.scan, hyperscan.ScanTerminated
