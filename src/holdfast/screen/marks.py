"""What is persisted about a terminal besides its output: its sizes, and up to where its queries were answered.

There is one file per process and one line per mark. A mark is written before the step that it records is taken, so a
crash in between leaves a query unanswered and never answers one twice.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from typing import NamedTuple

from holdfast.records import Struct, field

#: A file with more lines than this is rewritten with what still counts.
_LONGEST = 2000
_MOST_RESIZES = 500
_MOST_REPLIES = 100


class ResizeMark(NamedTuple):
    """From byte `offset` on, the terminal has this size."""

    offset: int
    cols: int
    rows: int


def size_at(resizes: Iterable[ResizeMark], offset: int) -> tuple[int, int] | None:
    """The last size that was given at or before this byte; None when none was."""
    found = [resize for resize in resizes if resize.offset <= offset]
    return (found[-1].cols, found[-1].rows) if found else None


def next_cut(offset: int, end: int, *cuts: Iterable[int]) -> int:
    """Where output from `offset` on has to be cut: at the first of `cuts` behind it, at `end` at the latest."""
    return min((cut for some in cuts for cut in some if offset < cut < end), default=end)


class Marks(Struct):
    path: str
    resizes: list[ResizeMark] = field(default_factory=list)
    #: Queries before this byte have been answered.
    handled: int = 0
    #: A client is attached; its terminal shows the output from this byte on, and answers.
    attached: int | None = None
    #: The latest replies: their sizes, by their offsets in the process's input.
    replies: dict[int, int] = field(default_factory=dict)
    _lines: int = 0

    def resize(self, offset: int, cols: int, rows: int) -> None:
        self.resizes.append(ResizeMark(offset, cols, rows))
        self._write({"size": [offset, cols, rows]})

    def handle(self, upto: int) -> None:
        if upto > self.handled:
            self.handled = upto
            self._write({"handled": upto})

    def reply(self, begin: int, size: int) -> None:
        self.replies[begin] = size
        self._write({"reply": [begin, size]})

    def attach(self, offset: int | None) -> None:
        if offset != self.attached:
            self.attached = offset
            self._write({"attached": offset})

    def _write(self, mark: dict[str, object]) -> None:
        self._lines += 1
        if self._lines > _LONGEST:
            self._rewrite()
            return
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, json.dumps(mark).encode() + b"\n")
        finally:
            os.close(fd)

    def _rewrite(self) -> None:
        self.resizes = self.resizes[-_MOST_RESIZES:]
        marks: list[dict[str, object]] = [{"size": list(resize)} for resize in self.resizes]
        self.replies = dict(list(self.replies.items())[-_MOST_REPLIES:])
        marks += [{"reply": list(reply)} for reply in self.replies.items()]
        marks += [{"handled": self.handled}, {"attached": self.attached}]
        temporary = f"{self.path}.new"
        with open(temporary, "w", opener=_private) as file:
            file.writelines(json.dumps(mark) + "\n" for mark in marks)
        os.rename(temporary, self.path)
        self._lines = len(marks)


def begin(path: str, cols: int, rows: int) -> Marks:
    """The marks of a terminal that is about to be created."""
    marks = Marks(path)
    marks.resize(0, cols, rows)
    return marks


def load(path: str) -> Marks | None:
    """The marks of an earlier daemon; None where there are none. A line that was cut off is ignored."""
    try:
        with open(path, "rb") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return None
    marks = Marks(path, _lines=len(lines))
    for line in lines:
        with contextlib.suppress(ValueError, TypeError, KeyError):
            _take(marks, json.loads(line))
    return marks


def _take(marks: Marks, mark: dict[str, object]) -> None:
    match mark:
        case {"size": [int(offset), int(cols), int(rows)]}:
            marks.resizes.append(ResizeMark(offset, cols, rows))
        case {"reply": [int(begin), int(size)]}:
            marks.replies[begin] = size
        case {"handled": int(upto)}:
            marks.handled = max(marks.handled, upto)
        case {"attached": int() | None as offset}:
            marks.attached = offset


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
