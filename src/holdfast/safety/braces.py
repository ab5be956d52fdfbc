"""Brace expansion: `{rm,-rf,/}` is three words, `x{1..3}` is three, too."""

from __future__ import annotations

import re
from itertools import pairwise

from holdfast.safety.marks import CLOSE, COMMA, OPEN

#: What one word may become; the rest is left out, for a list that long is data.
MOST_WORDS = 64
_RANGE = re.compile(r"(-?\w+)\.\.(-?\w+)(?:\.\.-?\d+)?")


def expand_braces(marked: str, most: int = MOST_WORDS) -> list[str]:
    """The words that a word becomes. Braces that do not expand are kept as they are."""
    if OPEN not in marked:
        return [marked]
    done: list[str] = []
    todo = [marked]
    while todo and len(done) + len(todo) <= most:
        word = todo.pop()
        parts = _first_group(word)
        if parts is None:
            done.append(word)
        else:
            todo.extend(reversed(parts))
    return done + todo[::-1]


def _first_group(word: str) -> list[str] | None:
    start = word.find(OPEN)
    while start >= 0:
        commas, end = _group(word, start)
        if end < 0:
            return None
        inner = word[start + 1 : end]
        choices = _choices(inner, [comma - start - 1 for comma in commas])
        if choices:
            return [word[:start] + choice + word[end + 1 :] for choice in choices]
        start = word.find(OPEN, start + 1)
    return None


def _group(word: str, start: int) -> tuple[list[int], int]:
    """Where the commas and the end of a group are; -1 for a group without an end."""
    depth, commas = 0, []
    for position in range(start, len(word)):
        letter = word[position]
        depth += (letter == OPEN) - (letter == CLOSE)
        if letter == COMMA and depth == 1:
            commas.append(position)
        if depth == 0:
            return commas, position
    return commas, -1


def _choices(inner: str, commas: list[int]) -> list[str]:
    if commas:
        edges = [-1, *commas, len(inner)]
        return [inner[left + 1 : right] for left, right in pairwise(edges)]
    if span := _RANGE.fullmatch(inner):
        return _between(span[1], span[2])
    return []


def _between(first: str, last: str) -> list[str]:
    """The ends of a range, and what lies between when it is short."""
    if first.lstrip("-").isdecimal() and last.lstrip("-").isdecimal() and len(first) + len(last) < 12:
        low, high = int(first), int(last)
        return [str(n) for n in range(low, high + 1)] if 0 <= high - low < 8 else [first, last]
    if len(first) == len(last) == 1:
        low, high = ord(first), ord(last)
        return [chr(n) for n in range(low, high + 1)] if 0 <= high - low < 26 else [first, last]
    return []
