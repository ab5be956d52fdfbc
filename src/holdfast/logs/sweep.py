"""Searching a log with a pattern, for a moment at a time, so that it can be stopped and others get a turn.

Everything here blocks and is meant for a thread.
"""

from __future__ import annotations

import time
from typing import Any

from holdfast.logs import lines
from holdfast.logs.blocks import SHOWN
from holdfast.logs.matcher import LogMatch, StreamMatcher
from holdfast.logs.pattern import Pattern
from holdfast.logs.reader import CHUNK, Extent, Log
from holdfast.logs.search import LogSearch, SearchHit
from holdfast.model.text import TextView
from holdfast.records import Struct

#: How long one step may take, more or less.
_STEP = 0.05
#: Context lines are shown from within this many bytes before and after a match.
_CONTEXT = 64 << 10
#: As many bytes of text as one page of matches holds, more or less.
_PAGE = 1 << 20
#: What a match costs beside its text.
_FRAME = 200


class SearchQuery(Struct):
    """Lines from `start` to `end`, at most `limit`, with `before` and `after` lines of context."""

    start: int
    end: int | None
    line: int | None
    limit: int
    before: int = 0
    after: int = 0
    invert: bool = False
    counts: bool = False


class Sweep:
    """A page of matches in the making."""

    def __init__(self, log: Log, pattern: Pattern, query: SearchQuery) -> None:
        self.log = log
        self.query = query
        self.matches: list[dict[str, Any]] = []
        #: Whether the page is full before the end was reached.
        self.is_full = False
        self.search = LogSearch(
            pattern, start=query.start, line=query.line, invert=query.invert, wants_hits=not query.counts
        )
        self.at = query.start
        self.next_offset, self.next_line = query.start, query.line
        self._space = _PAGE

    def step(self) -> bool:
        """Go on for a moment. False at the end of what is there, or of the page."""
        until = time.monotonic() + _STEP
        while not self.is_full and (self.query.end is None or self.at < self.query.end):
            limit = CHUNK if self.query.end is None else min(CHUNK, self.query.end - self.at)
            chunk = self.log.read(self.at, limit)
            data = chunk.data if self.query.end is None else chunk.data[: max(0, self.query.end - chunk.offset)]
            if not data:
                return False
            self.at = chunk.offset + len(data)
            self._take(self.search.feed(chunk.offset, data))
            if not self.is_full:
                self.next_offset, self.next_line = self.search.unfinished_at, self.search.line
            if time.monotonic() > until:
                return not self.is_full
        return False

    def finish(self) -> None:
        """What is there is all: also a last line without a newline."""
        if not self.is_full:
            self._take(self.search.finish())
            if not self.is_full:
                self.next_offset, self.next_line = self.at, self.search.line

    def _take(self, hits: Any) -> None:
        for hit in hits:
            self.matches.append(self._shown(hit))
            self.next_offset = hit.following
            self.next_line = None if hit.line is None else hit.line + hit.has_newline
            if len(self.matches) >= self.query.limit or self._space <= 0:
                self.is_full = True
                return

    def _shown(self, hit: SearchHit) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "line": hit.line,
            "offset": hit.start,
            "end": hit.stop,
            "match_offset": hit.match,
            "text": hit.text,
            "column": hit.column,
            "length": hit.length,
            "cut": hit.is_cut,
        }
        self._space -= len(hit.text) + _FRAME
        if self.query.before:
            shown["before"] = self._context(lines_before(self.log, hit.start, self.query.before), hit.line, -1)
        if self.query.after:
            shown["after"] = self._context(lines_after(self.log, hit.following, self.query.after), hit.line, 1)
        return shown

    def _context(self, found: list[dict[str, Any]], line: int | None, step: int) -> list[dict[str, Any]]:
        first = 0 if line is None else line + 1 if step > 0 else line - len(found)
        for number, context in enumerate(found, first):
            context["line"] = None if line is None else number
            self._space -= len(context["text"]) + _FRAME
        return found


def place(log: Log, offset: int | None, line: int | None, numbered: bool) -> tuple[int, int | None, Extent]:
    """Where the line begins that holds a byte, its number if it is known and `numbered`, and the extent of the log."""
    extent = log.extent()
    asked = offset or 0
    start = min(max(asked, extent.first), extent.end)
    if start > extent.first and start < extent.end and log.read(start - 1, 1).data != b"\n":
        start, line = lines.tail_start(log, 1, Extent(extent.first, start)), None
    if extent.first or not numbered:
        return start, None if start != asked else line, extent
    return start, lines.count_lines(log, 0, start) if line is None else line, extent


def lines_before(log: Log, start: int, count: int) -> list[dict[str, Any]]:
    """The last lines before a byte at which one begins; those that lie too far back are left out."""
    first = max(0, start - _CONTEXT)
    data, first = _read(log, first, start)
    if first and not (first == start - len(data) and log.read(first - 1, 1).data == b"\n"):
        cut = data.find(b"\n") + 1
        data, first = data[cut:] if cut else b"", first + cut
    found = _shown_lines(data, first)
    return found[max(0, len(found) - count) :]


def lines_after(log: Log, start: int, count: int) -> list[dict[str, Any]]:
    data, first = _read(log, start, start + _CONTEXT)
    return _shown_lines(data, first)[:count]


def _read(log: Log, start: int, end: int) -> tuple[bytes, int]:
    data = lines.read_all(log, start, end)
    return data, end - len(data) if len(data) < end - start and log.extent().first > start else start


def _shown_lines(data: bytes, offset: int) -> list[dict[str, Any]]:
    found = []
    for line in _split(data):
        view = TextView()
        text = view.feed(line) + view.close()
        shown = {"text": text[:SHOWN], "cut": len(text) > SHOWN}
        found.append({"line": None, "offset": offset, "end": offset + len(line), **shown})
        offset += len(line) + 1
    return found


def _split(data: bytes) -> list[bytes]:
    found = data.split(b"\n")
    return found if found[-1] else found[:-1]


def next_match(log: Log, matcher: StreamMatcher) -> tuple[LogMatch | None, bool]:
    """Match for a moment: the first match, and whether the end of the log was reached without one."""
    until = time.monotonic() + _STEP
    while (chunk := log.read(matcher.at)).data:
        for found in matcher.feed(chunk.offset, chunk.data):
            return matcher.shown(found), False
        if time.monotonic() > until:
            return None, False
    found_last = next(matcher.peek(), None)
    return (None, True) if found_last is None else (matcher.shown(found_last), False)
