"""When output arrived: the index that the keeper writes beside a log (docs/keeper.md). Everything here blocks.

The time of a byte is that of the last entry at or before its offset, exact to 100 ms. Output before the first entry
came at the start. A line has the time of its first byte.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from holdfast.logs import lines
from holdfast.logs.reader import Extent, Log

#: Without an index, output that came later than this after the start is of an unknown time.
_AT_ONCE = 1.0


class TimeEntry(NamedTuple):
    """Output from `offset` on arrived at `time`, or the terminal was resized then, if there are `cols` and `rows`."""

    offset: int
    time: float
    cols: int
    rows: int


class TimeIndex:
    """The entries of one log in the order of their offsets. `is_known`: whether it says when output arrived.

    An older keeper writes none. Then only `start` and `last`, the time of the newest output, are known.
    """

    def __init__(self, start: float, last: float | None, entries: list[TimeEntry]) -> None:
        self.start = start
        self.last = last
        self.entries = entries
        self._offsets = [entry.offset for entry in entries]
        self.is_known = bool(entries) or last is None or last - start < _AT_ONCE

    def at(self, offset: int) -> float:
        found = bisect_right(self._offsets, offset)
        return self.entries[found - 1].time if found else self.start

    def between(self, first: int, end: int) -> list[TimeEntry]:
        """The entries for these bytes; the first one is that of `first`, with the size of the terminal."""
        found = bisect_right(self._offsets, first)
        sized = next((entry for entry in reversed(self.entries[:found]) if entry.cols), None)
        head = TimeEntry(first, self.at(first), *((sized.cols, sized.rows) if sized is not None else (0, 0)))
        return [head, *self.entries[found : bisect_right(self._offsets, end - 1, found)]] if end > first else [head]

    def since(self, time: float) -> int | None:
        """The offset of the first output that arrived at this time or later; None if there is none yet."""
        if not self.is_known:
            return 0 if self.last is not None and self.last >= time else None
        if self.start >= time:
            return 0
        return next((entry.offset for entry in self.entries if entry.time >= time), None)

    def after(self, time: float) -> int | None:
        """The offset of the first output that arrived later; None if there is none yet."""
        if not self.is_known:
            return 0 if self.start > time else None
        if self.start > time:
            return 0
        return next((entry.offset for entry in self.entries if entry.time > time), None)


def read_index(log: Log) -> TimeIndex:
    """The index of a log as it is now. One that cannot be read is empty."""
    start = log.started()
    if start is None:
        return TimeIndex(0.0, None, [])
    entries: list[TimeEntry] = []
    for micros, offset, cols, rows, _ in log.time_entries():
        while entries and entries[-1].offset > offset:  # of a log that lost its end in a power cut
            entries.pop()
        entries.append(TimeEntry(offset, micros / 1e6, cols, rows))
    return TimeIndex(start, log.last_change(), entries)


def window(log: Log, since: float | None, until: float | None) -> Extent:
    """The lines that arrived between these times, by the time of their first byte."""
    extent = log.extent()
    if since is None and until is None:
        return extent
    index = read_index(log)
    first = extent.first if since is None else _line_from(log, index.since(since), extent)
    end = extent.end if until is None else _line_from(log, index.after(until), extent)
    return Extent(first, max(first, end))


def _line_from(log: Log, offset: int | None, extent: Extent) -> int:
    """The first line that begins at `offset` or later."""
    if offset is None or offset >= extent.end:
        return extent.end
    if offset <= extent.first or log.read(offset - 1, 1).data == b"\n":
        return max(offset, extent.first)
    return lines.skip_lines(log, offset, 1, extent.end)
