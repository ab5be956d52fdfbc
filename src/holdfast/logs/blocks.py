"""The lines of a block of log in which a pattern matches.

The text view of each line is searched, so that escape codes hide nothing. To make it is slow, and most logs are plain
text: a block is checked first, and searched as it is where it is plain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.logs import texts
from holdfast.logs.finder import Finder, LinePlace
from holdfast.logs.pattern import TextSpan
from holdfast.model.text import TextView
from holdfast.records import Struct

#: Colours and the clearing of lines, and how many different ones are removed one by one.
_COLOR = re.compile(rb"\x1b\[(?:[0-9;:]*m|0?K)")
_COLORS = 24
_C1 = re.compile("[\x80-\x9f]")
#: A block that needs cleaning is cleaned in pieces of about this size, since not every piece may need it.
_PIECE = 32 << 10
#: In a longer line, the place of a match among escape codes is not searched for.
_LOCATED = 64 << 10
#: As much of a line as is shown, and how much of it before the match.
SHOWN = 2000
_BEFORE = 500


class FoundLine(Struct, frozen=True):
    """A line that was found: where it stands in the block, and its text as it stands in `source`."""

    start: int
    stop: int
    source: bytes
    text_start: int
    text_stop: int
    #: In `source`; empty where the line was found because nothing matches.
    span: TextSpan


def count_lines(finder: Finder, data: bytes, start: int, stop: int) -> int:
    """How many lines of `data[start:stop]` match; faster than finding them."""
    if start == stop:
        return 0
    if is_plain(data):
        return finder.count(data, start, stop - (data[stop - 1] == 0x0A))
    return sum(_count_in_piece(finder, data[begin:end]) for begin, end in _pieces(data, start, stop))


def found_lines(finder: Finder, data: bytes, start: int, stop: int, invert: bool) -> Iterator[FoundLine]:
    """The matching lines (with `invert`, the others) of `data[start:stop]`, which holds whole lines.

    The last may be without a newline; then it ends where `data` does.
    """
    if start == stop:
        return
    if is_plain(data):
        for line in _lines(finder, data, start, stop, invert):
            yield FoundLine(line.start, line.stop, data, *line)
        return
    for piece_start, piece_stop in _pieces(data, start, stop):
        yield from _in_piece(finder, data[piece_start:piece_stop], piece_start, invert)


def is_plain(data: bytes) -> bool:
    """Whether the text view of these bytes is these bytes."""
    return not texts.has_controls(data) and (data.isascii() or _is_plain_text(data))


def cleaned(data: bytes) -> bytes:
    """The text view, in UTF-8."""
    data = data.replace(b"\r\n", b"\n")
    if (uncolored := without_colors(data)) is not None:
        return uncolored
    clean = _text(data)
    if clean.count(b"\n") == data.count(b"\n"):
        return clean
    return b"\n".join([_text(line).replace(b"\n", b" ") for line in data.split(b"\n")])


def located(raw: bytes, line: FoundLine) -> int | None:
    """Where in its raw line the match begins; None where it does not stand there as it is shown."""
    if raw == line.source[line.text_start : line.text_stop]:
        return line.span.start - line.text_start
    matched = line.source[line.span.start : line.span.end]
    if len(raw) > _LOCATED or b"\b" in raw or b"\r" in raw.rstrip(b"\r"):
        at = raw.rfind(matched)
        return at if matched and at >= 0 else None
    return _after(raw, line.source[line.text_start : line.span.start])


def shown(line: FoundLine) -> tuple[str, int, int, bool]:
    """The text of a line, cut around its match; where that begins in it, how long it is, and whether it was cut."""
    source, span = line.source, line.span
    before = source[max(line.text_start, span.start - 4 * SHOWN) : span.start].decode(errors="ignore")
    match = source[span.start : min(span.end, span.start + 4 * SHOWN)].decode(errors="ignore")
    after = source[span.end : min(line.text_stop, span.end + 4 * SHOWN)].decode(errors="ignore")
    whole = line.text_stop - line.text_start
    if whole <= SHOWN or (len(before) + len(match) + len(after) <= SHOWN and whole <= 4 * SHOWN):
        return before + match + after, len(before), len(match), False
    space = max(_BEFORE, SHOWN - len(match) - len(after))
    before = before[max(0, len(before) - space) :]
    text = (before + match + after)[:SHOWN]
    return text, len(before), min(len(match), SHOWN - len(before)), True


def without_colors(data: bytes) -> bytes | None:
    """The text without colours, if nothing else has to be removed; else None.

    Each escape character has to begin a colour: then what is left of a line is the same in any order.
    """
    clean, escapes = data, data.count(b"\x1b")
    for _ in range(_COLORS):
        if b"\x1b" not in clean or (found := _COLOR.match(clean, clean.find(b"\x1b"))) is None:
            break
        escapes -= data.count(found[0])
        clean = clean.replace(found[0], b"")
    if b"\x1b" in clean:  # more than a few different ones
        clean, colors = _COLOR.subn(b"", data)
        escapes = data.count(b"\x1b") - colors
    return clean if not escapes and is_plain(clean) else None


def _is_plain_text(data: bytes) -> bool:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return b"\xc2" not in data or _C1.search(text) is None


def _text(data: bytes) -> bytes:
    view = TextView()
    return (view.feed(data) + view.close()).encode()


def _lines(finder: Finder, data: bytes, start: int, stop: int, invert: bool) -> Iterator[LinePlace]:
    if stop > start and data[stop - 1] == 0x0A:
        stop -= 1
    found = finder.matching(data, start, stop)
    yield from _others(data, start, stop, found) if invert else found


def _others(data: bytes, at: int, stop: int, found: Iterator[LinePlace]) -> Iterator[LinePlace]:
    for line in found:
        yield from _all(data, at, line.start - 1)
        at = line.stop + 1
    yield from _all(data, at, stop)


def _all(data: bytes, at: int, stop: int) -> Iterator[LinePlace]:
    while at <= stop:
        end = data.find(b"\n", at, stop)
        end = stop if end < 0 else end
        yield LinePlace(at, end, TextSpan(at, at))
        at = end + 1


def _pieces(data: bytes, start: int, stop: int) -> Iterator[tuple[int, int]]:
    while start < stop:
        end = data.find(b"\n", min(start + _PIECE, stop), stop) + 1 or stop
        yield start, end
        start = end


def _count_in_piece(finder: Finder, raw: bytes) -> int:
    text = cleaned(raw)
    return finder.count(text, 0, len(text) - text.endswith(b"\n"))


def _in_piece(finder: Finder, raw: bytes, offset: int, invert: bool) -> Iterator[FoundLine]:
    """Lines of the text, found again among the bytes: both have the same number of them."""
    text = cleaned(raw)
    raw_at = text_at = 0
    for line in _lines(finder, text, 0, len(text), invert):
        for _ in range(text.count(b"\n", text_at, line.start)):
            raw_at = raw.index(b"\n", raw_at) + 1
        text_at = line.start
        raw_stop = raw.find(b"\n", raw_at)
        raw_stop = len(raw) if raw_stop < 0 else raw_stop
        yield FoundLine(offset + raw_at, offset + raw_stop, text, *line)


def _after(raw: bytes, before: bytes) -> int | None:
    """How many bytes make this text and no more. Bytes without a character count to the next one."""
    low, high = 0, len(raw)
    while low < high:
        middle = (low + high + 1) // 2
        if len(_text(raw[:middle])) > len(before):
            high = middle - 1
        else:
            low = middle
    return low if _text(raw[:low]) == before else None
