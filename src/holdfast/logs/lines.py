"""Where lines begin. A line ends with a newline; what follows the last newline is a line, too.

Lines are counted from the first that is whole: after a dropped head, that is the one behind the first newline.
"""

from __future__ import annotations

from holdfast.logs.reader import CHUNK, Extent, Log

_BLOCK = 64 << 10


def tail_start(log: Log, lines: int, extent: Extent | None = None) -> int:
    """Where the last `lines` lines of the log, or of this extent of it, begin.

    Never inside a line, unless the only one there is has lost its head.
    """
    first, end = extent or log.extent()
    needed = lines + 1 if _ends_with_newline(log, end) else lines
    if lines <= 0:
        return end
    at = end
    while at > first:
        block_start = max(first, at - _BLOCK)
        block = read_all(log, block_start, at)
        newlines = block.count(b"\n")
        if newlines >= needed:
            return block_start + _nth_last(block, needed) + 1
        needed -= newlines
        at = block_start
    return whole_line(log, first, end) if first else 0


def skip_lines(log: Log, offset: int, lines: int, end: int | None = None) -> int:
    """Where the line that is `lines` further on begins; `end`, or that of the log, when there are fewer lines."""
    while lines > 0 and (end is None or offset < end):
        chunk = log.read(offset, CHUNK if end is None else min(CHUNK, end - offset))
        if not chunk.data:
            return chunk.offset
        newlines = chunk.data.count(b"\n")
        if newlines >= lines:
            return chunk.offset + _nth(chunk.data, lines) + 1
        lines -= newlines
        offset = chunk.end
    return offset


def first_line(log: Log, extent: Extent) -> int:
    """Where the first line begins. After a dropped head that is the first whole one, if there is any."""
    return whole_line(log, extent.first, extent.end) if extent.first else 0


def count_lines(log: Log, start: int, end: int) -> int | None:
    """How many newlines lie between; None when some of it is gone."""
    count = 0
    while start < end:
        chunk = log.read(start, min(CHUNK, end - start))
        if not chunk.data or chunk.offset != start:
            return None
        count += chunk.data.count(b"\n")
        start = chunk.end
    return count


def _ends_with_newline(log: Log, end: int) -> bool:
    return end > 0 and log.read(end - 1, 1).data == b"\n"


def whole_line(log: Log, first: int, end: int) -> int:
    """The first line that is whole; the head of the log where there is none."""
    start = skip_lines(log, first, 1)
    return start if start < end else first


def read_all(log: Log, start: int, end: int) -> bytes:
    """The bytes from `start` to `end`; fewer, but still up to `end`, when some were dropped meanwhile."""
    parts = []
    while start < end:
        chunk = log.read(start, min(CHUNK, end - start))
        if not chunk.data or chunk.offset >= end:
            break
        parts.append(chunk.data[: end - chunk.offset])
        start = chunk.end
    return b"".join(parts)


def _nth(data: bytes, count: int) -> int:
    at = -1
    for _ in range(count):
        at = data.index(b"\n", at + 1)
    return at


def _nth_last(data: bytes, count: int) -> int:
    at = len(data)
    for _ in range(count):
        at = data.rindex(b"\n", 0, at)
    return at
