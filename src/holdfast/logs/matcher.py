"""Output as it comes, in chunks, to matching lines: the one matcher of watches, `wait --until match` and `ready_log`.

The matches are the same for any chunks. A matcher that starts at a byte of a log reports exactly what one that ran from
the start would report from there on. What it matches are *states* (see `states`): a line is one, and so is each version
of a line that is written over. A state is reported once. In a state that is not complete, a match counts if no
continuation can undo it: `Password: ` does, `done$` waits for the end of the line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from holdfast.logs import blocks, lines, states
from holdfast.logs.blocks import FoundLine
from holdfast.logs.finder import Finder, LinePlace
from holdfast.logs.pattern import Pattern, TextSpan, first_match
from holdfast.logs.reader import Log
from holdfast.logs.states import StateStart
from holdfast.records import Struct

#: What is not plain text is cleaned in pieces of about this size, since not every piece may need it.
_PIECE = 32 << 10
#: The versions of a state with backspaces are searched until they have this size together.
_VERSIONS = 4 << 20


class PatternMatch(NamedTuple):
    """The first pattern of a list that matches a text, and where."""

    pattern: str
    span: TextSpan


class LinePatterns(Protocol):
    """One pattern or a list of them."""

    def lines(self, data: bytes, start: int, stop: int) -> Iterator[LinePlace]:
        """The lines of plain text `data[start:stop]` that match; the newline of the last one comes behind them."""

    def first(self, line: bytes) -> PatternMatch:
        """Which pattern matches a complete line, when one is known to."""

    def in_text(self, text: bytes, begin: int, known: int, is_open: bool) -> PatternMatch | None:
        """The match in a text from `begin` on that ends behind `known`; see `first_match`."""


class OnePattern:
    """A single pattern as LinePatterns."""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self.lines = Finder(pattern).matching

    def first(self, line: bytes) -> PatternMatch:
        span = self._pattern.find(line)
        assert span is not None
        return PatternMatch("", span)

    def in_text(self, text: bytes, begin: int, known: int, is_open: bool) -> PatternMatch | None:
        span = first_match(self._pattern, text, begin, known, is_open)
        return None if span is None else PatternMatch("", span)


class StateMatch(Struct, frozen=True):
    """A matching state by its bytes in the log, and its text as it stands in `text`."""

    start: int
    stop: int
    text: bytes
    text_start: int
    text_stop: int
    #: None when it is only known that there is one.
    first: PatternMatch | None
    #: The bytes of the log up to `stop` that `text` was made of; empty where they are the text.
    raw: bytes = b""


class LogMatch(Struct, frozen=True):
    """A match to show: where its state and the match itself begin in the log, and up to 2,000 characters of text."""

    start: int
    #: None when the match does not stand in the log as it is shown.
    match: int | None
    stop: int
    pattern: str
    text: str
    column: int
    length: int
    is_cut: bool
    #: Whether the text stands in the log as it is shown.
    is_raw: bool


class StreamMatcher:
    """Starts behind `context`, the bytes of the log from `base` on.

    `is_whole`: there is nothing before `base`, or nothing left; else `context` has states.LOOKBACK bytes.
    `repeats`: a state that matched in `context` already may match again; the match has to end behind `context`.
    """

    def __init__(
        self, patterns: LinePatterns, context: bytes = b"", base: int = 0, is_whole: bool = True, repeats: bool = False
    ) -> None:
        self._patterns = patterns
        #: The bytes of the log that are still needed, and where they begin.
        self._held, self._base = context, base
        #: The state that is not complete, and whether it was reported.
        self._now = states.begin(context, base, is_whole)
        self._is_reported = False
        self._known_upto = self.at if repeats else 0
        self._let_go()
        self._is_reported = not repeats and any(self._last(is_open=True))

    @classmethod
    def resume(cls, patterns: LinePatterns, log: Log, after: int, repeats: bool = False) -> StreamMatcher:
        """One that has come as far as `after`, or as the first byte behind it that is left."""
        first, end = log.extent()
        if not first < after <= end:  # nothing is left of what was before, or the log is another one
            return cls(patterns, b"", max(first, after), repeats=repeats)
        context = lines.read_all(log, max(first, after - states.LOOKBACK), after)
        return cls(patterns, context, after - len(context), len(context) < states.LOOKBACK, repeats)

    @property
    def at(self) -> int:
        """How far it has come."""
        return self._base + len(self._held)

    @property
    def _begin(self) -> int:
        return self._now.at - self._base

    def feed(self, offset: int, data: bytes) -> Iterator[StateMatch]:
        """The matches in the states that `data` completes. All of them have to be taken."""
        if offset != self.at:  # what lay between was dropped
            self._held, self._base, self._now, self._is_reported = b"", offset, StateStart(offset, True), False
        searched = max(self._begin, len(self._held))
        self._held += data
        raw = self._held
        for cut in states.cuts(raw, self._base, self._begin):
            yield from self._part(raw, searched, cut)
            yield from self._turn(self._look(raw, self._begin, cut, is_open=True), self._base + cut, True)
            searched = cut
        yield from self._part(raw, searched, len(raw))
        self._let_go()

    def peek(self) -> Iterator[StateMatch]:
        """The match in the state that is not complete, if no continuation can undo it."""
        return self._last(is_open=True)

    def finish(self) -> Iterator[StateMatch]:
        """The match in the last state, to which nothing is added any more."""
        return self._last(is_open=False)

    def shown(self, found: StateMatch) -> LogMatch:
        line = found.text[found.text_start : found.text_stop]
        pattern, span = found.first or self._patterns.first(line)
        raw = found.raw or line
        whole = FoundLine(0, len(raw), line, 0, len(line), span)
        text, column, length, is_cut = blocks.shown(whole)
        at = blocks.located(raw, whole)
        match = None if at is None else found.stop - len(raw) + at
        is_raw = found.stop - found.start == len(line)
        return LogMatch(found.start, match, found.stop, pattern, text, column, length, is_cut, is_raw)

    def _last(self, is_open: bool) -> Iterator[StateMatch]:
        begin, end = self._begin, len(self._held)
        found = self._look(self._held, begin, end, is_open) if begin < end else None
        if found is not None:
            self._is_reported = True
            yield found

    def _turn(self, found: StateMatch | None, at: int, is_inside: bool) -> Iterator[StateMatch]:
        """Go on with the next state, which begins at `at`."""
        self._now, self._is_reported = StateStart(at, is_inside), False
        if found is not None:
            yield found

    def _let_go(self) -> None:
        """Drop bytes that are not needed any more: all but the context of the state that is not complete."""
        size = self._begin - (states.OVERLAP if self._now.is_inside else 1)
        if size > 0:
            self._held, self._base = self._held[size:], self._base + size

    def _part(self, raw: bytes, searched: int, stop: int) -> Iterator[StateMatch]:
        """The states that end before `stop`, and none before `searched`. Some of the first may have been searched."""
        base, begin = self._base, self._begin
        ended = states.first_end(raw, begin, searched, stop)
        if ended is None:
            return
        is_one = states.counts(raw, base, begin, *ended)
        found = self._look(raw, begin, ended[0], is_open=False) if is_one else None
        yield from self._turn(found, base + ended[1], False)
        last = states.last_end(raw, ended[1], stop)
        if last:
            yield from self._block(raw, ended[1], last)
            self._now, self._is_reported = StateStart(base + last, False), False

    def _look(self, raw: bytes, start: int, stop: int, is_open: bool) -> StateMatch | None:
        """The match in one state, if that was not reported yet."""
        if self._is_reported:
            return None
        before = max(0, start - states.OVERLAP) if self._now.is_inside else start
        known = max(start, min(stop, self._known_upto - self._base))
        text = states.text_of(raw[before:stop], is_open)
        context = states.text_of(raw[before:known], True) if before < known else b""
        found = self._in_versions(text, context, is_open) if b"\b" in text else self._in_text(text, context, is_open)
        if found is None:
            return None
        return StateMatch(self._base + start, self._base + stop, found[0], 0, len(found[0]), found[1], raw[before:stop])

    def _in_text(self, text: bytes, context: bytes, is_open: bool) -> tuple[bytes, PatternMatch] | None:
        """The text with the pattern that matches in it behind its context."""
        begin = len(text.decode()[:1].encode()) if self._now.is_inside else 0
        if begin == 0 and self._now.is_inside:
            return None
        first = self._patterns.in_text(text, begin, len(context), is_open)
        return first and (text, first)

    def _in_versions(self, text: bytes, context: bytes, is_open: bool) -> tuple[bytes, PatternMatch] | None:
        """As `_in_text`, in the first version of the text that matches."""
        *_, context_now = states.versions(context.decode())
        left = _VERSIONS
        for version, is_last in states.versions_marked(text.decode()):
            found = self._in_text(version.encode(), context_now.encode(), is_open or not is_last)
            left -= len(version)
            if found is not None or left < 0:
                return found
        return None

    def _block(self, raw: bytes, start: int, stop: int) -> Iterator[StateMatch]:
        """Whole states that were not searched yet."""
        if raw[start - 1 : start] == b"\n" and blocks.is_plain(raw):  # which saves a copy
            yield from self._plain(raw, start, stop, raw, 0)
            return
        while start < stop:
            end = raw.find(b"\n", start + _PIECE, stop) + 1 or stop
            yield from self._piece(raw, start, raw[start:end])
            start = end

    def _plain(self, raw: bytes, start: int, stop: int, text: bytes, shift: int) -> Iterator[StateMatch]:
        """Lines that are their own text, as they stand in `text`, which is `raw` from `shift` on."""
        for line in self._patterns.lines(text, start - shift, stop - shift - 1):
            begin, end = line.start + shift, line.stop + shift
            if states.counts(raw, self._base, begin, end, end + 1):
                yield StateMatch(self._base + begin, self._base + end, text, line.start, line.stop, None)

    def _piece(self, raw: bytes, start: int, piece: bytes) -> Iterator[StateMatch]:
        """States of which some are not plain: their texts, located among the bytes by their number."""
        if blocks.is_plain(piece):
            yield from self._plain(raw, start, start + len(piece), piece, start)
            return
        text = states.texts_of(piece)
        if b"\b" in text:
            yield from self._one_by_one(raw, start, states.ends(piece))
            return
        ends: list[tuple[int, int]] = []
        number = at = 0
        for line in self._patterns.lines(text, 0, len(text) - 1):
            ends = ends or [(0, 0), *states.ends(piece)]
            number += text.count(b"\n", at, line.start)
            at = line.start
            begin, (end, following) = ends[number][1], ends[number + 1]
            if states.counts(raw, self._base, start + begin, start + end, start + following):
                place = self._base + start
                yield StateMatch(place + begin, place + end, text, line.start, line.stop, None, piece[begin:end])

    def _one_by_one(self, raw: bytes, start: int, ends: list[tuple[int, int]]) -> Iterator[StateMatch]:
        begin = start
        for end, following in ends:
            self._now, self._is_reported = StateStart(self._base + begin, False), False
            if states.counts(raw, self._base, begin, start + end, start + following):
                found = self._look(raw, begin, start + end, is_open=False)
                if found is not None:
                    yield found
            begin = start + following
