"""Searching a log as it is read: bytes in, lines that match out, in constant memory however they are cut.

A line longer than LONGEST is searched in pieces of that size that overlap by OVERLAP: what matches within OVERLAP is
found wherever it stands, and `$` matches at the true end alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.logs import blocks
from holdfast.logs.blocks import SHOWN, FoundLine
from holdfast.logs.finder import Finder
from holdfast.logs.pattern import Pattern

LONGEST = 1 << 20
OVERLAP = 16 << 10


class SearchHit(NamedTuple):
    """A line that was found."""

    #: Where the line begins and ends in the log, without its newline.
    start: int
    stop: int
    #: Its number from the start of the log; None when that is not known.
    line: int | None
    #: Where the match begins in the log; None when it does not stand there as it is shown.
    match: int | None
    #: The text view, SHOWN characters of it at most; `column` and `length` are the match in it.
    text: str
    column: int
    length: int
    is_cut: bool
    has_newline: bool

    @property
    def following(self) -> int:
        """Where the next line begins."""
        return self.stop + self.has_newline


class LogSearch:
    """`line` is the number of the line that begins with the first byte; None when that is not known.

    `start` is the offset that the search begins at, where that is known before the first bytes come: bytes that are
    dropped in between count as skipped. `wants_hits` False counts alone, which is faster.
    """

    def __init__(
        self,
        pattern: Pattern,
        *,
        start: int | None = None,
        line: int | None = 0,
        invert: bool = False,
        wants_hits: bool = True,
    ) -> None:
        self._pattern = pattern
        self._finder = Finder(pattern)
        self._invert = invert
        self._wants_hits = wants_hits
        self._line = line if wants_hits else None
        self._held = b""
        self._held_at = start or 0
        self._next = start
        self._long: _LongLine | None = None
        self.count = 0
        #: Bytes searched, bytes dropped before that, and lines longer than LONGEST.
        self.searched = self.skipped = self.long_lines = 0

    @property
    def unfinished_at(self) -> int:
        """Where the line begins that is not complete yet."""
        return self._long.start if self._long is not None else self._held_at

    @property
    def line(self) -> int | None:
        """The number of that line."""
        return self._line

    def feed(self, offset: int, data: bytes) -> Iterator[SearchHit]:
        """The lines that `data` completes. All of them have to be taken."""
        self._note_place(offset, len(data))
        head = data.find(b"\n") + 1
        if not head:
            yield from self._hold(data)
            return
        if self._held or self._long is not None:
            yield from self._complete(data[:head])
        else:
            head = 0
        end = data.rfind(b"\n") + 1
        yield from self._block(data, head, end, offset)
        self._held, self._held_at = data[end:], offset + end

    def finish(self) -> Iterator[SearchHit]:
        """The last line, which has no newline."""
        if self._held or self._long is not None:
            yield from self._complete(b"")

    def _note_place(self, offset: int, size: int) -> None:
        """Dropped bytes end the line before them, and make line numbers unknown."""
        if self._next is None:
            self._held_at = offset
        elif offset != self._next:
            self.skipped += offset - self._next
            self._line = None
            self._held, self._held_at, self._long = b"", offset, None
        self._next = offset + size
        self.searched += size

    def _block(self, data: bytes, start: int, end: int, offset: int) -> Iterator[SearchHit]:
        if not self._wants_hits and not self._invert:
            self.count += blocks.count_lines(self._finder, data, start, end)
            return
        at = start
        for found in blocks.found_lines(self._finder, data, start, end, self._invert):
            self.count += 1
            if self._wants_hits:
                if self._line is not None:
                    self._line += data.count(b"\n", at, found.start)
                    at = found.start
                yield self._hit(data, found, offset)
        if self._line is not None:
            self._line += data.count(b"\n", at, end)

    def _hit(self, data: bytes, found: FoundLine, offset: int) -> SearchHit:
        text, column, length, is_cut = blocks.shown(found)
        at = None if self._invert else blocks.located(data[found.start : found.stop], found)
        has_newline = data[found.stop : found.stop + 1] == b"\n"
        start, stop = offset + found.start, offset + found.stop
        match = None if at is None else start + at
        return SearchHit(start, stop, self._line, match, text, column, length, is_cut, has_newline)

    def _complete(self, rest: bytes) -> Iterator[SearchHit]:
        """The line that was held, with its end; the number after it is that of the next."""
        if self._long is None and len(self._held) + len(rest) > LONGEST:
            self._become_long()
        data, self._held = self._held + rest, b""
        if self._long is None:
            yield from self._block(data, 0, len(data), self._held_at)
            return
        long, self._long = self._long, None
        long.search(self._pattern, data.rstrip(b"\n"), self._held_at, is_end=True)
        yield from self._long_hit(long, self._held_at + len(data), bool(rest))
        if rest and self._line is not None:
            self._line += 1

    def _hold(self, data: bytes) -> Iterator[SearchHit]:
        self._held += data
        if len(self._held) > LONGEST:
            self._become_long()
            assert self._long is not None
            self._long.search(self._pattern, self._held, self._held_at, is_end=False)
            self._held_at += len(self._held) - OVERLAP
            self._held = self._held[-OVERLAP:]
        yield from ()

    def _become_long(self) -> None:
        if self._long is None:
            self._long = _LongLine(self._held_at)
            self.long_lines += 1

    def _long_hit(self, long: _LongLine, end: int, has_newline: bool) -> Iterator[SearchHit]:
        if (long.found is None) != self._invert:
            return
        self.count += 1
        if self._wants_hits:
            match, text, column, length = long.found or (None, long.begin, 0, 0)
            stop = end - has_newline
            yield SearchHit(long.start, stop, self._line, match, text, column, length, True, has_newline)


class _LongLine:
    """A line too long to be held, and the first match in it."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.begin = ""
        self.found: tuple[int | None, str, int, int] | None = None

    def search(self, pattern: Pattern, data: bytes, offset: int, is_end: bool) -> None:
        """Search the next piece. If the line goes on, its last character is context only."""
        text = data if blocks.is_plain(data) else blocks.cleaned(data)
        is_begin = offset == self.start
        if is_begin:
            self.begin = text[: 4 * SHOWN].decode(errors="ignore")[:SHOWN]
        start, stop = (0 if is_begin else 1), (len(text) if is_end else len(text) - 1)
        if self.found is None and start <= stop and (span := pattern.find(text, start, stop)) is not None:
            line = FoundLine(0, len(data), text, 0, len(text), span)
            at = blocks.located(data, line) if text is not data else span.start
            self.found = (None if at is None else offset + at, *blocks.shown(line)[:3])
