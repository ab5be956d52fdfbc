"""The patterns of one watch, compiled: which lines match any of them, and which of them a line matches first.

All of them together are one expression, so that a hundred cost as much as one. Literals come before expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from holdfast.errors import BadValue
from holdfast.logs.finder import Finder, Place
from holdfast.logs.pattern import Pattern, Span, compile_pattern, for_lines

MOST_PATTERNS = 100
#: What the program of one expression, and that of all of them, may have of steps: more would be slow to run.
LARGEST_PROGRAM = 20_000
LARGEST_PROGRAMS = 100_000
#: For the program and the states of all of them; where it does not do, they are run more slowly.
_MEMORY = 64 << 20
#: What may follow a line that is not complete, as far as it makes a difference: a letter, or something else.
_FOLLOWERS = (b"x", b" ")

_NEXT = "use fewer or shorter patterns, and smaller numbers in {n,m}"


class First(NamedTuple):
    """The first pattern of the list that matches a line, and where."""

    pattern: str
    span: Span


class Patterns:
    """Raises BadValue for what cannot be used. Blocks for milliseconds, with large patterns for more."""

    def __init__(self, literals: Sequence[str], expressions: Sequence[str]) -> None:
        if not 0 < len(literals) + len(expressions) <= MOST_PATTERNS:
            raise BadValue(f"a watch has 1 to {MOST_PATTERNS} patterns, not {len(literals) + len(expressions)}")
        self._texts = (*literals, *expressions)
        self._each = [
            *(compile_pattern(text, fixed=True) for text in literals),
            *(compile_pattern(text) for text in expressions),
        ]
        parts = _parts(literals, expressions)
        self._any = _any_of(parts)
        self._which = _set_of(parts)
        self._finder = Finder(self._any)

    def lines(self, data: bytes, start: int, stop: int) -> Iterator[Place]:
        """The lines of `data[start:stop]` that match, of which the last has no newline."""
        return self._finder.matching(data, start, stop)

    def first(self, line: bytes) -> First:
        """Which pattern matches a line that is complete, of which it is known that one does."""
        candidates = self._which.Match(line) or range(len(self._each))
        for number in sorted(candidates):
            if (span := self._each[number].find(line)) is not None:
                return First(self._texts[number], span)
        raise AssertionError("no pattern matches")

    def in_text(self, text: bytes, begin: int, known: int, is_open: bool) -> First | None:
        """Which pattern matches this text, from `begin` on, and ends behind `known`.

        In an open one only what stays a match whatever follows: `foo$` waits for the line to end, `Password: ` does
        not.
        """
        if not is_open:
            return self._first(text, begin, len(text), known)
        letter, other = (text + follower for follower in _FOLLOWERS)
        if self._any.find(letter, begin, len(text)) is None:
            return None
        for name, pattern in zip(self._texts, self._each, strict=True):
            span = _ending_beyond(pattern, letter, begin, len(text), known)
            if span is not None and _ending_beyond(pattern, other, begin, len(text), known) is not None:
                return First(name, span)
        return None

    def _first(self, data: bytes, start: int, stop: int, known: int) -> First | None:
        if self._any.find(data, start, stop) is None:
            return None
        for name, pattern in zip(self._texts, self._each, strict=True):
            if (span := _ending_beyond(pattern, data, start, stop, known)) is not None:
                return First(name, span)
        return None


def _ending_beyond(pattern: Pattern, data: bytes, at: int, stop: int, known: int) -> Span | None:
    while at <= stop and (span := pattern.find(data, at, stop)) is not None:
        if span.end > known or not known:
            return span
        at = max(span.end, span.start + 1)
    return None


def _parts(literals: Sequence[str], expressions: Sequence[str]) -> list[bytes]:
    from re2 import _re2

    quoted = [_re2.RE2.QuoteMeta(text.encode(errors="surrogateescape")) for text in literals]
    parts = [*quoted, *(for_lines(text).encode(errors="surrogateescape") for text in expressions)]
    sizes = [_compiled(part).ProgramSize() for part in parts]
    if max(sizes) > LARGEST_PROGRAM or sum(sizes) > LARGEST_PROGRAMS:
        raise BadValue(f"the patterns are too large: {sum(sizes)} steps", next=_NEXT)
    return [b"(?m:%b)" % part for part in parts]


def _any_of(parts: Sequence[bytes]) -> Pattern:
    from re2 import _re2

    return Pattern(_compiled(b"|".join(parts)), _re2.RE2.Anchor.UNANCHORED)


def _set_of(parts: Sequence[bytes]) -> Any:
    """Which of them match a text, all at once."""
    from re2 import _re2

    found = _re2.Set(_re2.RE2.Anchor.UNANCHORED, _options())
    for part in parts:
        found.Add(part)
    found.Compile()
    return found


def _compiled(pattern: bytes) -> Any:
    from re2 import _re2

    regexp = _re2.RE2(pattern, _options())
    if not regexp.ok():
        raise BadValue("the patterns are too large together", next=_NEXT)
    return regexp


def _options() -> Any:
    from re2 import _re2

    options = _re2.RE2.Options()
    options.log_errors = False
    options.never_capture = True
    options.never_nl = True
    options.max_mem = _MEMORY
    return options
