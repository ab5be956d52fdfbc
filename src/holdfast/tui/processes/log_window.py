"""A part of a log as lines, each with its byte offset: constant memory, however long the log is. No I/O."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

#: A longer line is shown in pieces of this size.
LONGEST_LINE = 8 << 10
#: The most bytes that are held.
MOST = 512 << 10


class LogLine(NamedTuple):
    offset: int
    data: bytes


def split(start: int, data: bytes) -> list[LogLine]:
    """The lines of a part that begins at byte `start`; the last one may go on."""
    lines: list[LogLine] = []
    at = 0
    while at < len(data):
        cut = data.find(b"\n", at, at + LONGEST_LINE)
        end = cut + 1 if cut >= 0 else min(len(data), at + LONGEST_LINE)
        lines.append(LogLine(start + at, data[at:end]))
        at = end
    return lines


class LogWindow:
    """Bytes `first` to `end` of a log."""

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.first = self.end = 0

    def set(self, start: int, data: bytes, *, is_line_start: bool) -> None:
        """Replace all. A part that begins within a line begins with the next one, if there is one soon."""
        if not is_line_start:
            cut = data.find(b"\n", 0, LONGEST_LINE) + 1
            start, data = start + cut, data[cut:]
        self.lines = split(start, data)
        self.first, self.end = start, start + len(data)

    def append(self, data: bytes) -> int:
        """What follows `end`; the number of lines that were dropped at the front."""
        if self.lines and not self.lines[-1].data.endswith(b"\n"):
            last = self.lines.pop()
            self.lines += split(last.offset, last.data + data)
        else:
            self.lines += split(self.end, data)
        self.end += len(data)
        return self._drop_front()

    def prepend(self, start: int, data: bytes, *, is_line_start: bool) -> int:
        """What is before `first`; the number of lines that came."""
        before = LogWindow()
        before.set(start, data, is_line_start=is_line_start)
        self.lines = before.lines + self.lines
        if before.lines:
            self.first = before.first
        self._drop_back()
        return len(before.lines)

    def index_of(self, offset: int) -> int:
        """The line that holds this byte; the nearest one, where it is outside."""
        return max(0, bisect_right(self.lines, offset, key=lambda line: line.offset) - 1)

    def _drop_front(self) -> int:
        dropped = 0
        while self.end - self.first > MOST and dropped < len(self.lines) - 1:
            dropped += 1
            self.first = self.lines[dropped].offset
        del self.lines[:dropped]
        return dropped

    def _drop_back(self) -> None:
        while self.end - self.first > MOST and len(self.lines) > 1:
            self.end = self.lines.pop().offset
