"""Waiting for a pattern in output as it comes: the same answer however it is cut into pieces.

A line that is overwritten by carriage returns is looked at in each of its states. In the line that is not complete
yet, a match counts when it stays one whatever follows: `foo$` waits for the line to end, `Password: ` does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.logs import blocks
from holdfast.logs.blocks import Line
from holdfast.logs.finder import Finder
from holdfast.logs.pattern import Pattern, Span
from holdfast.logs.search import OVERLAP, shown

#: As much of a line that is not complete as is held; of a longer one, its last OVERLAP bytes.
_HELD = 64 << 10


class Found(NamedTuple):
    """The first match: where its line (or the state of it) and the match itself begin in the log, and the text."""

    start: int
    match: int | None
    text: str
    column: int
    length: int
    is_cut: bool


class Watching:
    """`after`: a match has to end behind this byte, so that it is news. What comes before it is context."""

    def __init__(self, pattern: Pattern, after: int = 0) -> None:
        self._pattern = pattern
        self._finder = Finder(pattern)
        self._after = after
        self._held = b""
        self._held_at = 0
        #: Whether the held bytes begin in the middle of a line.
        self._is_inside = False
        self._next: int | None = None

    def feed(self, offset: int, data: bytes) -> Found | None:
        """The first match in the lines that `data` completes."""
        if offset != self._next:
            self._held, self._held_at, self._is_inside = b"", offset, False
        self._next = offset + len(data)
        end = data.rfind(b"\n") + 1
        found = self._complete(data[:end]) if end else None
        self._held += data[end:]
        return found

    def peek(self) -> Found | None:
        """A match in the line that is not complete yet. What need not be looked at again is let go."""
        found = self._in_line(self._held, self._held_at, is_open=True)
        self._let_go(max(self._held.rfind(b"\r", 0, len(self._held) - 1) + 1, 0))
        if len(self._held) > _HELD:
            self._let_go(len(self._held) - OVERLAP)
            self._is_inside = True
        return found

    def finish(self) -> Found | None:
        """A match in the last line, to which nothing is added any more."""
        return self._in_line(self._held, self._held_at, is_open=False) if self._held else None

    def _let_go(self, size: int) -> None:
        self._held, self._held_at = self._held[size:], self._held_at + size
        self._is_inside = self._is_inside and not size

    def _complete(self, data: bytes) -> Found | None:
        block, at, is_inside = self._held + data, self._held_at, self._is_inside
        self._held, self._held_at, self._is_inside = b"", at + len(block), False
        if at >= self._after and not is_inside and not _is_overwritten(block):
            for line in blocks.found_lines(self._finder, block, 0, len(block), False):
                return _found(line, block, at)
            return None
        if at >= self._after and not is_inside and not self._may_match(block):
            return None
        for raw in block[:-1].split(b"\n"):
            if at + len(raw) > self._after and (found := self._in_line(raw, at, is_open=False, is_inside=is_inside)):
                return found
            at, is_inside = at + len(raw) + 1, False
        return None

    def _may_match(self, block: bytes) -> bool:
        """False when no state of any line does: each of them as a line of its own, looked at all at once.

        Nothing is promised of escape sequences, which may reach from one line into the next, nor of a pattern that
        matches nothing at all.
        """
        if b"\x1b" in block or self._pattern.find(b"", 0, 0) is not None:
            return True
        text = blocks.cleaned(block.replace(b"\r", b"\n"))
        return any(True for _ in blocks.found_lines(self._finder, text, 0, len(text), False))

    def _in_line(self, raw: bytes, at: int, is_open: bool, is_inside: bool | None = None) -> Found | None:
        is_inside = self._is_inside if is_inside is None else is_inside
        for start, stop in _states(raw):
            if at + stop > self._after or not self._after:
                state = raw[start:stop]
                known = len(blocks.cleaned(state[: max(0, self._after - at - start)]))
                last = is_open and stop == len(raw)
                found = self._in_state(state, at + start, known, last, is_inside and not start)
                if found is not None:
                    return found
        return None

    def _in_state(self, raw: bytes, at: int, known: int, is_open: bool, is_inside: bool) -> Found | None:
        text = blocks.cleaned(raw)
        begin = 1 if is_inside else 0
        followers = (b"x", b" ") if is_open else (b"",)
        spans = [_ending_beyond(self._pattern, text + follower, begin, len(text), known) for follower in followers]
        if None in spans or spans[0] is None:
            return None
        return _found(Line(0, len(raw), text, 0, len(text), spans[0]), raw, at)


def _is_overwritten(block: bytes) -> bool:
    return b"\b" in block or block.count(b"\r") != block.count(b"\r\n")


def _states(raw: bytes) -> Iterator[tuple[int, int]]:
    """The states that a line went through, as parts of it."""
    start = 0
    while (stop := raw.find(b"\r", start)) >= 0:
        yield start, stop
        start = stop + 1
    if start < len(raw) or not start:
        yield start, len(raw)


def _ending_beyond(pattern: Pattern, data: bytes, at: int, stop: int, known: int) -> Span | None:
    while at <= stop and (span := pattern.find(data, at, stop)) is not None:
        if span.end > known or not known:
            return span
        at = max(span.end, span.start + 1)
    return None


def _found(line: Line, data: bytes, at: int) -> Found:
    text, column, length, is_cut = shown(line)
    place = blocks.located(data[line.start : line.stop], line)
    return Found(at + line.start, None if place is None else at + line.start + place, text, column, length, is_cut)
