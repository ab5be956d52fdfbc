"""Finding matching lines in plain text the fastest way, which depends on the pattern and on the text.

A pattern is run over the whole text; or, where every match contains one of a few texts, only over the lines that have
one; a literal is searched for itself. Both ways are tried now and then, and the cheaper one is used.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import repeat
from operator import contains
from typing import NamedTuple

from holdfast.logs.pattern import Pattern, TextSpan
from holdfast.logs.texts import Needle

#: Below this size it does not matter.
_LARGE = 64 << 10
#: After this many blocks the slower way is tried again.
_AGAIN = 50
#: In a block with more lines that hold one of the texts, they do not help.
_FEW = 32
#: The size of the sample that decides whether many lines match.
_SAMPLE = 16 << 10


class LinePlace(NamedTuple):
    """A line and its match, by their places in the text."""

    start: int
    stop: int
    span: TextSpan


class Finder:
    """One for each search: it remembers which way is faster."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self._texts = [Needle(text) for text in ([pattern.literal] if pattern.literal else pattern.needed)]
        self._tries = 0
        #: Seconds a byte: of running the pattern, and of the other way.
        self._costs = [0.0, 0.0]

    def matching(self, data: bytes, start: int, stop: int) -> Iterator[LinePlace]:
        """The matching lines of `data[start:stop]`, of which the last has no newline."""
        if stop - start < _LARGE or not self._texts:
            return self._by_pattern(data, start, stop)
        way = self._choose()
        begun = time.thread_time()
        found = list(self._otherwise(data, start, stop) if way else self._by_pattern(data, start, stop))
        self._costs[way] = (time.thread_time() - begun) / (stop - start)
        return iter(found)

    def count(self, data: bytes, start: int, stop: int) -> int:
        """How many lines match, faster where many do."""
        literal = self.pattern.literal
        if literal and data.count(literal, start, min(stop, start + _SAMPLE)) > _SAMPLE // 1000:
            return sum(map(contains, data[start:stop].split(b"\n"), repeat(literal)))
        return sum(1 for _ in self.matching(data, start, stop))

    def _choose(self) -> int:
        self._tries += 1
        if self._tries <= 2:
            return self._tries % 2
        cheaper = int(self._costs[1] < self._costs[0])
        return cheaper if self._tries % _AGAIN else 1 - cheaper

    def _by_pattern(self, data: bytes, at: int, stop: int) -> Iterator[LinePlace]:
        find = self.pattern.find
        while at <= stop and (span := find(data, at, stop)) is not None:
            begin = data.rfind(b"\n", at, span.start) + 1 or at
            end = data.find(b"\n", span.end, stop)
            end = stop if end < 0 else end
            yield LinePlace(begin, end, span)
            at = end + 1

    def _otherwise(self, data: bytes, start: int, stop: int) -> Iterator[LinePlace]:
        by = self._by_text if self.pattern.literal else self._by_needed
        return by(data, start, stop)

    def _by_text(self, data: bytes, at: int, stop: int) -> Iterator[LinePlace]:
        (text,) = self._texts
        while at <= stop and (found := text.find(data, at, stop)) >= 0:
            begin = data.rfind(b"\n", at, found) + 1 or at
            end = data.find(b"\n", found, stop)
            end = stop if end < 0 else end
            yield LinePlace(begin, end, TextSpan(found, found + len(text.text)))
            at = end + 1

    def _by_needed(self, data: bytes, at: int, stop: int) -> Iterator[LinePlace]:
        places = {text: text.find(data, at, stop) for text in self._texts}
        for _ in range(_FEW):
            found = [place for place in places.values() if place >= 0]
            if at > stop or not found:
                return
            begin = data.rfind(b"\n", at, min(found)) + 1 or at
            end = data.find(b"\n", min(found), stop)
            end = stop if end < 0 else end
            if (span := self.pattern.find(data, begin, end)) is not None:
                yield LinePlace(begin, end, span)
            at = end + 1
            for text, known in places.items():
                if 0 <= known < at:
                    places[text] = text.find(data, at, stop) if at <= stop else -1
        yield from self._by_pattern(data, at, stop)
