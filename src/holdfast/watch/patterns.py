"""The patterns of one watch, compiled: which lines match any of them, and which of them a line matches first.

All of them together are one expression, so that a hundred cost as much as one. Literals come before expressions.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.errors import BadValue
from holdfast.logs.finder import Finder, LinePlace
from holdfast.logs.matcher import PatternMatch
from holdfast.logs.pattern import Pattern, compile_pattern, first_match, for_lines, re2_options
from holdfast.watch.prefilter import Prefilter

MOST_PATTERNS = 100
#: How many steps the program of one expression, and those of all together, may have: more would be slow to run.
LARGEST_PROGRAM = 20_000
LARGEST_PROGRAMS = 100_000
#: With this much memory RE2 takes programs of that size, and refuses larger ones at once.
_MEMORY_OF_ONE = LARGEST_PROGRAM * 16 * 4 * 3 // 2
#: For the program and the states of all of them; where it is not enough, they run more slowly.
_MEMORY = 64 << 20

_NEXT = "use fewer or shorter patterns, and smaller numbers in {n,m}"


#: A prefilter is compiled after this many bytes, and not used in blocks below this size.
_MANY = 4 << 20
_FEW = 4 << 10


class Patterns:
    """Raises BadValue for what cannot be used. Blocks for milliseconds, with large patterns for more."""

    def __init__(self, literals: Sequence[str], expressions: Sequence[str], may_prefilter: bool = True) -> None:
        if not 0 < len(literals) + len(expressions) <= MOST_PATTERNS:
            raise BadValue(f"a watch has 1 to {MOST_PATTERNS} patterns, not {len(literals) + len(expressions)}")
        parts = _parts(literals, expressions)
        self._texts = (*literals, *expressions)
        self._each = [
            *(compile_pattern(text, fixed=True) for text in literals),
            *(compile_pattern(text) for text in expressions),
        ]
        self._any = _any_of(parts)
        self._which = _set_of(parts)
        self._finder = Finder(self._any)
        #: Whether an empty line matches: then no prefilter can help.
        self.match_nothing = self._any.find(b"") is not None
        self._prefilter = _LazyPrefilter(literals, expressions) if may_prefilter and not self.match_nothing else None

    def lines(self, data: bytes, start: int, stop: int) -> Iterator[LinePlace]:
        """The lines of plain text `data[start:stop]` that match; the newline of the last comes behind them."""
        prefilter = self._prefilter.get(stop - start) if self._prefilter is not None else None
        places = prefilter.places(data) if prefilter is not None else None
        if places is None:
            return self._finder.matching(data, start, stop)
        return self._confirmed(data, start, stop, places)

    def _confirmed(self, data: bytes, start: int, stop: int, places: list[int]) -> Iterator[LinePlace]:
        """The matching lines among those that hold these places."""
        for place in sorted(places):
            if start <= place <= stop:
                begin = data.rfind(b"\n", start, place) + 1 or start
                end = data.find(b"\n", place, stop)
                end = stop if end < 0 else end
                if (span := self._any.find(data, begin, end)) is not None:
                    yield LinePlace(begin, end, span)
                start = end + 1

    def first(self, line: bytes) -> PatternMatch:
        """Which pattern matches a complete line, when one is known to."""
        candidates = self._which.Match(line) or range(len(self._each))
        for number in sorted(candidates):
            if (span := self._each[number].find(line)) is not None:
                return PatternMatch(self._texts[number], span)
        raise AssertionError("no pattern matches")

    def in_text(self, text: bytes, begin: int, known: int, is_open: bool) -> PatternMatch | None:
        if self._any.find(text + b"x" if is_open else text, begin, len(text)) is None:
            return None
        for name, pattern in zip(self._texts, self._each, strict=True):
            if (span := first_match(pattern, text, begin, known, is_open)) is not None:
                return PatternMatch(name, span)
        return None


class _LazyPrefilter:
    """A prefilter that is compiled in a thread once there is much to scan, if these patterns allow one."""

    def __init__(self, literals: Sequence[str], expressions: Sequence[str]) -> None:
        self._texts = literals, expressions
        self._seen = 0
        self._made: Prefilter | None = None
        self.making: threading.Thread | None = None

    def get(self, size: int) -> Prefilter | None:
        before, self._seen = self._seen, self._seen + size
        if before <= _MANY < self._seen:
            self.making = threading.Thread(target=self._make, daemon=True)
            self.making.start()
        return self._made if size >= _FEW else None

    def _make(self) -> None:
        with contextlib.suppress(ValueError):
            self._made = Prefilter(*self._texts)


def _parts(literals: Sequence[str], expressions: Sequence[str]) -> list[bytes]:
    """Each of them as a part of one expression. Raises BadValue fast if they are too large."""
    from re2 import _re2

    quoted = [_re2.RE2.QuoteMeta(text.encode(errors="surrogateescape")) for text in literals]
    parts = [*quoted, *(for_lines(text).encode(errors="surrogateescape") for text in expressions)]
    left = LARGEST_PROGRAMS
    for part, text in zip(parts, (*literals, *expressions), strict=True):
        regexp = _re2.RE2(part, re2_options(_MEMORY_OF_ONE))
        if not regexp.ok():
            compile_pattern(text, fixed=part in quoted)  # which says what is wrong with it
        left -= regexp.ProgramSize() if regexp.ok() else left + 1
        if left < 0:
            raise BadValue("the patterns of this watch are too large", next=_NEXT)
    return [b"(?m:%b)" % part for part in parts]


def _any_of(parts: Sequence[bytes]) -> Pattern:
    from re2 import _re2

    regexp = _re2.RE2(b"|".join(parts), re2_options(_MEMORY))
    if not regexp.ok():
        raise BadValue("the patterns are too large together", next=_NEXT)
    return Pattern(regexp, _re2.RE2.Anchor.UNANCHORED)


def _set_of(parts: Sequence[bytes]) -> Any:
    """A set that finds which of them match a text."""
    from re2 import _re2

    found = _re2.Set(_re2.RE2.Anchor.UNANCHORED, re2_options(_MEMORY))
    for part in parts:
        found.Add(part)
    found.Compile()
    return found
