"""Pages of a session log: a part of it, without reading the rest."""

from __future__ import annotations

import json
import os
import re
from typing import BinaryIO, NamedTuple

from holdfast.errors import NotFound
from holdfast.session_log import LogEntry, parse_line

#: Bytes of a page, unless a single entry has more.
PAGE_BYTES = 1 << 20
_BLOCK = 64 << 10
#: A longer entry is not in a page: a message to a client has its limit.
_LONGEST_LINE = 4 << 20
#: How the line of an entry begins, and as many bytes as that takes.
_HEAD = 32
_ID = re.compile(rb'\{"id": ?(\d{1,15}),')


class EntryPage(NamedTuple):
    """Some entries of a log, oldest first. `more`: there are others in the direction that was asked for."""

    entries: list[LogEntry]
    more: bool
    newest: int
    """The id of the newest entry of the log."""


def page(
    path: str, after: int | None = None, before: int | None = None, limit: int = 200, most: int = PAGE_BYTES
) -> EntryPage:
    """The entries behind `after`; else the newest ones before `before`, or of all. At least one, then `most` bytes.

    Only this part of the file is read: ids ascend, and so their places are found by bisection. Raises NotFound.
    """
    try:
        file = open(path, "rb")
    except OSError:
        raise NotFound("this session has no conversation with an agent", next="holdfast agent log lists them") from None
    with file:
        end = _last_line_end(file)
        newest = _newest(file, end)
        if after is not None:
            start = _find(file, end, after)
            found, is_all = _read_forward(file, start, end, limit, most)
        else:
            stop = end if before is None else _find(file, end, before - 1)
            found, is_all = _read_backward(file, stop, limit, most)
    return EntryPage(found, not is_all, newest)


def _last_line_end(file: BinaryIO) -> int:
    """The offset behind the last complete line."""
    at = file.seek(0, os.SEEK_END)
    while at > 0:
        start = max(0, at - _BLOCK)
        file.seek(start)
        found = file.read(at - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        at = start
    return 0


def _newest(file: BinaryIO, end: int) -> int:
    found, _ = _read_backward(file, end, 1, 0)
    return found[-1].id if found else 0


def _find(file: BinaryIO, end: int, id: int) -> int:
    """The offset of the first line whose entry has a greater id."""
    low, high = 0, end
    while low < high:
        middle = (low + high) // 2
        start, at = _line_at(file, middle, end)
        if at is None or at > id:
            high = middle
        else:
            low = start + 1
    return _line_at(file, low, end)[0]


def _line_at(file: BinaryIO, offset: int, end: int) -> tuple[int, int | None]:
    """The first line that begins at or behind the offset: where, and the id of its entry; the end where none does."""
    file.seek(max(0, offset - 1))
    if offset:
        file.readline()
    while (start := file.tell()) < end:
        line = file.readline(_HEAD)
        if (known := _ID.match(line)) is not None:
            return start, int(known[1])
        if not line.endswith(b"\n"):
            file.readline()
    return end, None


def _read_forward(file: BinaryIO, start: int, end: int, limit: int, most: int) -> tuple[list[LogEntry], bool]:
    """Entries from an offset on, and whether they reach to the end."""
    file.seek(start)
    found: list[LogEntry] = []
    used = 0
    while file.tell() < end:
        line = file.readline()
        if (entry := _shown(line)) is not None:
            used += _cost(line)
            if found and (len(found) >= limit or used > most):
                return found, False
            found.append(entry)
    return found, True


def _read_backward(file: BinaryIO, stop: int, limit: int, most: int) -> tuple[list[LogEntry], bool]:
    """The last entries before an offset, oldest first, and whether they reach to the beginning."""
    found: list[LogEntry] = []
    pieces: list[bytes] = []  # of a line that begins further in front, the last one first
    used, at = 0, stop
    while at > 0:
        if found and (len(found) >= limit or used >= most):
            return found[::-1], False
        start = max(0, at - _BLOCK)
        file.seek(start)
        block = file.read(at - start)
        at = start
        cut = block.find(b"\n") + 1 if start else 0
        if start and not cut:
            pieces.append(block)
            continue
        lines = (block[cut:] + b"".join(reversed(pieces))).split(b"\n")
        pieces = [block[:cut]]
        for line in reversed(lines):
            if not line or (entry := _shown(line)) is None:
                continue
            used += _cost(line)
            if found and (len(found) >= limit or used > most):
                return found[::-1], False
            found.append(entry)
    return found[::-1], True


def _shown(line: bytes) -> LogEntry | None:
    """The entry; of one that is too long for a reply, its size in place of its content."""
    entry = parse_line(line)
    if entry is not None and len(line) > _LONGEST_LINE:
        return entry._replace(content={"omitted": len(line)})
    return entry


def _cost(line: bytes) -> int:
    """The bytes that its entry takes in a page."""
    return len(line) if len(line) <= _LONGEST_LINE else 0


def input_entry(path: str, input: str) -> int | None:
    """The id of the entry that has this message of the user; None where the log has none."""
    mark = b'"input":' + json.dumps(input).encode()
    try:
        with open(path, "rb") as file:
            for line in file:
                if mark in line and (entry := parse_line(line)) is not None and entry.content.get("input") == input:
                    return entry.id
    except OSError:
        return None
    return None
