"""Output shortened for a model: the beginning and the end stay, a line says what is left out and how to read it.

No I/O.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from holdfast.records import Struct

_PIECE = re.compile(
    r"[A-Z]?[a-z]+|[A-Z]+|\d{1,3}|\n+|[ \t]{2,}|[!-/:-@\[-^`{-~]{1,3}|_|[\x80-\u1fff]{1,2}|[^\x00-\x7f]"
)
#: A word of up to 7 letters is mostly one token; a longer one costs a token more for every 4 letters.
_ONE_TOKEN, _MORE = 7, 4
_CJK, _AFTER_CJK, _ASTRAL = "\u3000", "\ud7ff", "\U00010000"


def estimate(text: str) -> int:
    """About how many tokens a text has."""
    return sum(map(_cost, _PIECE.findall(text)))


def _cost(piece: str) -> int:
    first = piece[0]
    if first >= "\u2000":
        return 3 if first >= _ASTRAL else 1 if _CJK <= first <= _AFTER_CJK else 2
    if len(piece) <= _ONE_TOKEN or not first.isalpha():
        return 1
    return 1 + (len(piece) - _ONE_TOKEN + _MORE - 1) // _MORE


#: The share of the beginning. The end gets more, because it shows the result.
_HEAD_SHARE = 0.35
#: Tokens are estimated in pieces of this many characters, so that a very long line is not read as a whole.
_WEIGHED = 120
#: From 20 consecutive lines that differ only in numbers, the first 3 and the last 3 are shown.
_ALIKE, _SHOWN = 20, 3
_NUMBERS = re.compile(r"\d+")
_FOLDED = re.compile(r"^\[… (\d{1,12}) lines like these …\]$", re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]{2}")


class CharacterBudget(NamedTuple):
    """The most that may be shown. Both bounds hold."""

    characters: int
    tokens: int


class Short(Struct, frozen=True):
    """The shown parts of a text. `left_out` characters with `lines` line ends were between them."""

    head: str
    tail: str
    left_out: int
    lines: int


def fits(text: str, budget: CharacterBudget) -> bool:
    return len(text) <= budget.characters and (3 * len(text) <= budget.tokens or estimate(text) <= budget.tokens)


def shorten(text: str, budget: CharacterBudget) -> Short:
    """All of it as `head` where it fits; else its beginning and its end, cut where lines end if any do."""
    if fits(text, budget):
        return Short(text, "", 0, 0)
    head = beginning(text, _share(budget, _HEAD_SHARE))
    tail = end(text[len(head) :], _share(budget, 1 - _HEAD_SHARE))
    middle = text[len(head) : len(text) - len(tail)]
    return Short(head, tail, len(middle), middle.count("\n"))


def join(first: str, unread: int, last: str, budget: CharacterBudget) -> Short:
    """The same for a text of which only the beginning and the end were read, with `unread` characters in between."""
    head, tail = beginning(first, _share(budget, _HEAD_SHARE)), end(last, _share(budget, 1 - _HEAD_SHARE))
    known = first[len(head) :].count("\n") + last[: len(last) - len(tail)].count("\n")
    return Short(head, tail, len(first) - len(head) + unread + len(last) - len(tail), known)


def beginning(text: str, budget: CharacterBudget) -> str:
    """As much of the beginning as fits, up to a line end if there is one."""
    size = tokens = 0
    while size < len(text) and size < budget.characters:
        piece = text[size : min(size + _WEIGHED, budget.characters)]
        tokens += estimate(piece)
        if tokens > budget.tokens:
            break
        size += len(piece)
    if size >= len(text):
        return text
    return text[: text.rfind("\n", 0, size) + 1 or size]


def end(text: str, budget: CharacterBudget) -> str:
    """As much of the end as fits, from the start of a line if there is one."""
    start, tokens = len(text), 0
    earliest = max(0, len(text) - budget.characters)
    while start > earliest:
        piece = text[max(start - _WEIGHED, earliest) : start]
        tokens += estimate(piece)
        if tokens > budget.tokens:
            break
        start -= len(piece)
    if start <= 0:
        return text
    after = text.find("\n", start - 1) + 1
    return text[after if 0 < after < len(text) else start :]


def fold(text: str) -> str:
    """Replace runs of lines that differ only in numbers (counters, progress) by their first and last lines.

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


def _share(budget: CharacterBudget, part: float) -> CharacterBudget:
    return CharacterBudget(int(budget.characters * part), int(budget.tokens * part))


#: Begins the line that says what is left out.
MARK = "[… "


class Excerpt(Struct, frozen=True):
    text: str
    is_folded: bool
    """Whether similar lines were folded."""


def excerpt_of_text(text: str, budget: CharacterBudget, process_id: str, first_line: int | None = 0) -> Excerpt:
    """A whole text for a model, with a line that says what is left out.

    `first_line` is the number of its first line in the log, None if unknown.
    """
    folded = text if fits(text, budget) else fold(text)
    return Excerpt(_marked(shorten(folded, budget), process_id, first_line), folded != text)


def excerpt_of_ends(head: str, unread: int, tail: str, budget: CharacterBudget, process_id: str) -> Excerpt:
    """The same for a text of which only the beginning and the end were read, with `unread` bytes in between."""
    first, last = fold(head), fold(tail)
    short = join(first, unread, last, budget)
    return Excerpt(_marked(short, process_id, 0), first != head or last != tail)


def _marked(short: Short, process_id: str, first_line: int | None) -> str:
    if not short.left_out:
        return short.head
    lines = f", {short.lines} lines" if short.lines else ""
    how = f"process(action='log', session_id='{process_id}'"
    if first_line is None or "\n" not in short.head:
        how += ", data='bytes', offset=…)"
    else:
        how += f", offset={first_line + lines_in(short.head)})"
    line = "" if short.head.endswith("\n") or not short.head else "\n"
    return f"{short.head}{line}{MARK}{short.left_out} characters{lines} left out: {how} …]\n{short.tail}"
