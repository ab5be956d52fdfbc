"""Output made to fit what a model can be shown: the beginning and the end stay, what is left out is counted. No I/O."""

from __future__ import annotations

import re
from typing import NamedTuple

_PIECE = re.compile(
    r"[A-Z]?[a-z]+|[A-Z]+|\d{1,3}|\n+|[ \t]{2,}|[!-/:-@\[-^`{-~]{1,3}|_|[\x80-\u1fff]{1,2}|[^\x00-\x7f]"
)
#: A word of so many letters is mostly one token; what is longer costs a token for every so many letters more.
_USUAL, _MORE = 7, 4
_CJK, _AFTER_CJK, _ASTRAL = "\u3000", "\ud7ff", "\U00010000"


def estimate(text: str) -> int:
    """About how many tokens."""
    return sum(map(_cost, _PIECE.findall(text)))


def _cost(piece: str) -> int:
    first = piece[0]
    if first >= "\u2000":
        return 3 if first >= _ASTRAL else 1 if _CJK <= first <= _AFTER_CJK else 2
    if len(piece) <= _USUAL or not first.isalpha():
        return 1
    return 1 + (len(piece) - _USUAL + _MORE - 1) // _MORE


#: Of what there is room for, so much goes to the beginning; how things ended matters more.
_HEAD_SHARE = 0.35
#: A line is weighed in pieces of so many characters: one without an end must not cost more than is shown of it.
_WEIGHED = 120
#: So many lines in a row that differ in numbers alone are shown by so many of the first and of the last.
_ALIKE, _SHOWN = 20, 3
_NUMBERS = re.compile(r"\d+")
_FOLDED = re.compile(r"^\[… (\d{1,12}) lines like these …\]$", re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]{2}")


class CharacterBudget(NamedTuple):
    """How much may be shown. Both bounds hold."""

    characters: int
    tokens: int


class Short(NamedTuple):
    """What is shown of a text. `left_out` characters, with `lines` line ends among them, stood in between."""

    head: str
    tail: str
    left_out: int
    lines: int


def fits(text: str, room: CharacterBudget) -> bool:
    return len(text) <= room.characters and (3 * len(text) <= room.tokens or estimate(text) <= room.tokens)


def shorten(text: str, room: CharacterBudget) -> Short:
    """All of it as `head` where it fits; else its beginning and its end, cut where lines end if any do."""
    if fits(text, room):
        return Short(text, "", 0, 0)
    head = beginning(text, _share(room, _HEAD_SHARE))
    tail = end(text[len(head) :], _share(room, 1 - _HEAD_SHARE))
    middle = text[len(head) : len(text) - len(tail)]
    return Short(head, tail, len(middle), middle.count("\n"))


def join(first: str, unread: int, last: str, room: CharacterBudget) -> Short:
    """Of a text of which only the beginning and the end are known, with so many characters in between."""
    head, tail = beginning(first, _share(room, _HEAD_SHARE)), end(last, _share(room, 1 - _HEAD_SHARE))
    known = first[len(head) :].count("\n") + last[: len(last) - len(tail)].count("\n")
    return Short(head, tail, len(first) - len(head) + unread + len(last) - len(tail), known)


def beginning(text: str, room: CharacterBudget) -> str:
    """As much of the beginning as there is room for, up to the end of a line if one ends in it."""
    size = tokens = 0
    while size < len(text) and size < room.characters:
        piece = text[size : min(size + _WEIGHED, room.characters)]
        tokens += estimate(piece)
        if tokens > room.tokens:
            break
        size += len(piece)
    if size >= len(text):
        return text
    return text[: text.rfind("\n", 0, size) + 1 or size]


def end(text: str, room: CharacterBudget) -> str:
    """As much of the end as there is room for, from the begin of a line on if one begins in it."""
    start, tokens = len(text), 0
    earliest = max(0, len(text) - room.characters)
    while start > earliest:
        piece = text[max(start - _WEIGHED, earliest) : start]
        tokens += estimate(piece)
        if tokens > room.tokens:
            break
        start -= len(piece)
    if start <= 0:
        return text
    after = text.find("\n", start - 1) + 1
    return text[after if 0 < after < len(text) else start :]


def fold(text: str) -> str:
    """Rows of lines that differ in numbers alone (counters, progress, repetitions), each as its first and last lines.

    Lines without a word are data, and stay.
    """
    rows: list[list[str]] = []
    last = None
    for line in text.splitlines(keepends=True):
        kind = _NUMBERS.sub("0", line)
        if kind == last:
            rows[-1].append(line)
        else:
            rows.append([line])
        last = kind
    return "".join(_folded(row) for row in rows)


def _folded(row: list[str]) -> str:
    if len(row) < _ALIKE or not _WORD.search(row[0]):
        return "".join(row)
    first, last = "".join(row[:_SHOWN]), "".join(row[-_SHOWN:])
    return f"{first}[… {len(row) - 2 * _SHOWN} lines like these …]\n{last}"


def lines_in(folded: str) -> int:
    """How many lines a text had before it was folded."""
    return folded.count("\n") + sum(int(match[1]) - 1 for match in _FOLDED.finditer(folded))


def _share(room: CharacterBudget, part: float) -> CharacterBudget:
    return CharacterBudget(int(room.characters * part), int(room.tokens * part))
