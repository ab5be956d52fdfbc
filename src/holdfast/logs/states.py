"""States: what output is divided into to be matched. A line is one, and so is each version of an overwritten line.

A state ends at a line end, at a carriage return, and where the cursor goes to another line or to the start of its own.
A long state is cut where a whole cell of the log holds no such end; cells lie at fixed offsets. So the start of a
state can be found in a bounded number of bytes before it, and every reader finds the same one. No I/O.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.logs import blocks
from holdfast.model.text import without_sequences

CELL = 64 << 10
#: As many bytes before a cut are searched together with what follows it.
OVERLAP = 8 << 10
#: The sequences that the text view takes for a return or a move to another line, as they stand in the bytes.
_MOVE = rb"(?:[0-9]{0,4}[ABEF]|0{0,4}G|0{0,3}1G|0?[1-9][0-9]{2}D|[1-9][0-9]{3}D|0{0,3}2K)"
_LONGEST = 7
#: Each begins with one text, so that it is found at speed.
_MOVES = re.compile(rb"\x1b\[" + _MOVE)
_C1_MOVES = re.compile(rb"\xc2\x9b" + _MOVE)
#: Among whole lines, `\r\n` is one end.
_ENDS = re.compile(rb"\n|\r\n?|(?:\x1b\[|\xc2\x9b)" + _MOVE)
#: The start of a state lies within this many bytes.
LOOKBACK = 2 * CELL + OVERLAP + _LONGEST


class StateStart(NamedTuple):
    """Where a state begins; `is_inside` when that is in the middle of a line, after a cut or what was dropped."""

    at: int
    is_inside: bool


def begin(raw: bytes, base: int, is_whole: bool) -> StateStart:
    """Where the state begins that continues behind `raw`, the bytes of the log from `base` on.

    `is_whole`: there is nothing before `base`, or nothing left; else `raw` has LOOKBACK bytes.
    """
    end = base + len(raw)
    last = last_end(raw, 0, len(raw))
    known = base + last if last else base
    cut = end // CELL * CELL
    if (last or is_whole) and cut < next_cut(known):
        return StateStart(known, not last and base > 0)
    return StateStart(cut, True)


def next_cut(at: int) -> int:
    """Where a state that begins at `at` is cut, if it has not ended until there."""
    return -(-at // CELL) * CELL + CELL


def cuts(raw: bytes, base: int, start: int) -> Iterator[int]:
    """Where states are cut, as places in `raw`; `start` is where one begins there."""
    at = next_cut(base + start) - base
    while at <= len(raw):
        if raw.rfind(b"\n", at - CELL, at) < 0 and not last_end(raw, max(0, at - CELL), at):
            yield at
        at += CELL


def first_end(raw: bytes, start: int, searched: int, stop: int) -> tuple[int, int] | None:
    """Where the state that begins at `start` ends, and where the next one begins; not before `searched`."""
    line = raw.find(b"\n", start, stop) + 1 or stop
    line = raw.find(b"\r", start, line) + 1 or line
    for begin, end in _moves(raw, max(0, searched - _LONGEST), line):
        if end > start:
            return max(begin, start), end
    return (line - 1, line) if raw[line - 1 : line] in (b"\n", b"\r") and line > start else None


def last_end(raw: bytes, start: int, stop: int) -> int:
    """Behind the last end of a state that is complete behind `start`; 0 when there is none."""
    found = max(raw.rfind(b"\n", start, stop), raw.rfind(b"\r", start, stop)) + 1
    for _, end in _moves(raw, max(found, start - _LONGEST, 0), stop):
        found = max(found, end)
    return found if found > start else 0


def _moves(raw: bytes, start: int, stop: int) -> list[tuple[int, int]]:
    """Where the cursor moves, in order."""
    found = [move.span() for move in _MOVES.finditer(raw, start, stop)] if raw.find(b"\x1b[", start, stop) >= 0 else []
    if raw.find(b"\xc2\x9b", start, stop) >= 0:
        found = sorted([*found, *(move.span() for move in _C1_MOVES.finditer(raw, start, stop))])
    return found


def text_of(raw: bytes, is_open: bool) -> bytes:
    """The text of one state in UTF-8, with its backspaces. What may belong to a character to come is left out."""
    if blocks.is_plain(raw):
        return raw
    return without_sequences(codecs.utf_8_decode(raw, "replace", not is_open)[0]).encode()


def texts_of(raw: bytes) -> bytes:
    """The texts of whole states, each with a newline behind it; as many as `ends` finds."""
    raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    clean = blocks.without_colors(raw)
    if clean is None:
        raw = _C1_MOVES.sub(b"\n", _MOVES.sub(b"\n", raw))
        clean = blocks.without_colors(raw)
    return without_sequences(raw.decode(errors="replace")).encode() if clean is None else clean


def ends(raw: bytes) -> list[tuple[int, int]]:
    """Where each of whole states ends, and where the next one begins."""
    return [found.span() for found in _ENDS.finditer(raw)]


def counts(raw: bytes, base: int, start: int, stop: int, following: int) -> bool:
    """Whether a state is one to match. One without bytes is, if it is an empty line."""
    if start < stop:
        return True
    return raw[stop:following] == b"\n" and (base + start == 0 or raw[start - 1 : start] == b"\n")


def versions(text: str) -> Iterator[str]:
    """The text as it was before each run of backspaces, and as it is at the end."""
    return (version for version, _ in versions_marked(text))


def versions_marked(text: str) -> Iterator[tuple[str, bool]]:
    """Each version, and whether it is the last."""
    now, back = "", 0
    for stroke in text.split("\b"):
        if stroke:
            if back:
                yield now, False
                now = now[:-back]
            now, back = now + stroke, 0
        back += 1
    if back > 1:
        yield now, False
        now = now[: 1 - back]
    yield now, True
