"""Expansion: `$x` and `${x…}`, braces, and backslash escapes as in `$'…'`, `printf` and `echo -e`."""

from __future__ import annotations

import fnmatch
import re
from itertools import pairwise
from typing import TYPE_CHECKING

from holdfast.safety.marks import CLOSE, COMMA, OPEN, SPLIT, UNKNOWN

if TYPE_CHECKING:
    from holdfast.safety.words import Words

_HEAD = re.compile(r"(?P<indirect>!?)(?P<name>[A-Za-z_]\w*|[0-9]+|[@*#?$!-])(?:\[(?P<index>[^\]]*)\])?")
_TRIMS = ("##", "#", "%%", "%")
#: The most words that one word becomes; a longer list is data, and its rest is left out.
MOST_BRACES = 64
_BRACE_RANGE = re.compile(r"(-?\w+)\.\.(-?\w+)(?:\.\.-?\d+)?")
_ESCAPE = re.compile(
    r"\\(?:x(?P<hex>[0-9A-Fa-f]{1,2})|u(?P<short>[0-9A-Fa-f]{1,4})|U(?P<long>[0-9A-Fa-f]{1,8})"
    r"|(?P<octal>0?[0-7]{1,3})|c(?P<control>.)|(?P<letter>.))",
    re.DOTALL,
)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}


class Parameters:
    """Variables of one script, looked up and transformed."""

    def __init__(self, words: Words, quoted: bool) -> None:
        self.words = words
        self.state = words.state
        self.quoted = quoted

    def named(self, name: str) -> list[str]:
        """The possible values of a variable; UNKNOWN if the script does not set it."""
        return self._set_values(name) or [UNKNOWN]

    def _set_values(self, name: str) -> list[str]:
        arguments = self.state.arguments
        if name in ("@", "*"):
            return [] if arguments is None else [self._joined(arguments, name)]
        if name.isdecimal() and name != "0":
            return [] if arguments is None else [arguments[int(name) - 1] if int(name) <= len(arguments) else ""]
        if name == "PWD":
            return [self.state.cwd]
        if elements := self.state.arrays.get(name):
            return [elements[0]]
        return list(self.state.values.get(name, ()))

    def _joined(self, values: tuple[str, ...], sign: str) -> str:
        return (" " if sign == "*" and self.quoted else SPLIT).join(values)

    def braced(self, start: int, end: int) -> list[str]:
        """The possible values of `${…}`."""
        text = self.words.text
        if text.startswith("#", start) and end - start > 1:
            return [UNKNOWN]
        head = _HEAD.match(text, start, end)
        if not head:
            self.words.scan(start, end, quoted=True)
            return [UNKNOWN]
        values = self._head_values(head)
        return self._operated(head["name"], values, head.end(), end)

    def _head_values(self, head: re.Match[str]) -> list[str]:
        name, index = head["name"], head["index"]
        if head["indirect"]:
            return [value for inner in self._set_values(name) for value in self._set_values(inner)]
        if index is None:
            return self._set_values(name)
        return self._elements(name, index)

    def _elements(self, name: str, index: str) -> list[str]:
        elements = self.state.arrays.get(name)
        if elements is None:
            return self._set_values(name) if index in ("@", "*", "0") else []
        if index in ("@", "*"):
            return [self._joined(elements, index)]
        if index.lstrip("-").isdecimal() and len(index) < 6:
            return [elements[int(index)]] if -len(elements) <= int(index) < len(elements) else [""]
        return list(elements)

    def _operated(self, name: str, values: list[str], start: int, end: int) -> list[str]:
        text = self.words.text[start:end]
        if not text or text.startswith("@"):
            return values or [UNKNOWN]
        if text.lstrip(":")[:1] in ("-", "=", "+", "?") and len(text) - len(text.lstrip(":")) < 2:
            return self._defaulted(name, values, start + text.startswith(":"), end)
        operand = self.words.scan(start, end, quoted=True)
        if not values or UNKNOWN in "".join((*values, *operand)):
            return [UNKNOWN]
        if trim := next((sign for sign in _TRIMS if text.startswith(sign)), None):
            return [_trimmed(value, operand[0][len(trim) :], trim) for value in values]
        # A known value that is sliced, replaced or changed in case may spell anything.
        self.words.runs.find("@unknown-code", text, f"${{{name}{text}}}")
        return [UNKNOWN]

    def _defaulted(self, name: str, values: list[str], start: int, end: int) -> list[str]:
        sign = self.words.text[start]
        other = self.words.scan(start + 1, end, quoted=self.quoted)
        if sign == "+":
            return other if values else [*other, ""]
        if sign == "?":
            return values or [UNKNOWN]
        if sign == "=" and not values:
            self.state.set(name, tuple(other))
        return [value for value in values if value] or other


def _trimmed(value: str, pattern: str, trim: str) -> str:
    if len(value) > 256 or len(pattern) > 64:
        return UNKNOWN
    at_front = trim[0] == "#"
    cuts = range(len(value) + 1) if (len(trim) == 1) == at_front else range(len(value), -1, -1)
    for cut in cuts:
        part = value[:cut] if at_front else value[cut:]
        if fnmatch.fnmatchcase(part, pattern):
            return value[cut:] if at_front else value[:cut]
    return value


def expand_braces(marked: str, most: int = MOST_BRACES) -> list[str]:
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
    if span := _BRACE_RANGE.fullmatch(inner):
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


def unescaped(text: str) -> str:
    """The text with its escapes replaced; an unknown escape stands for its character."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(found: re.Match[str]) -> str:
    if code := found["hex"] or found["short"] or found["long"]:
        number = int(code, 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE010 else "\ufffd"
    if found["octal"]:
        return chr(int(found["octal"], 8) & 0xFF)
    if found["control"]:
        return chr(ord(found["control"]) & 0x1F)
    return _ESCAPED.get(found["letter"], found["letter"])
