"""Scanning one stream: bytes in, matching lines out, the same however they are cut and wherever it is taken up again.

A state is told once: when what there is of it matches for the first time. Whether that was so at a byte can be told
from the log alone, so that who goes on at a byte tells exactly what was not told before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.logs import blocks
from holdfast.logs.blocks import Line
from holdfast.logs.search import shown
from holdfast.model.watching import Match
from holdfast.watch import states
from holdfast.watch.patterns import First, Patterns
from holdfast.watch.states import Begin

#: What is not plain is looked at in pieces of about this size, since not all of them may be like that.
_PIECE = 32 << 10
#: A state whose text is taken back and typed again is looked at until all its versions have this size.
_VERSIONS = 4 << 20


class Found(NamedTuple):
    """A match, as places in the log, and the line as it stands in a text."""

    start: int
    stop: int
    text: bytes
    text_start: int
    text_stop: int
    #: None when it is only known that there is one.
    first: First | None


class Scanner:
    """Goes on behind `context`, which ends where matches begin to be news and lies at `base` of the log.

    `is_whole`: there is nothing before `base`, or nothing left; else `context` has states.LOOKBACK bytes.
    """

    def __init__(self, patterns: Patterns, context: bytes, base: int, is_whole: bool) -> None:
        self._patterns = patterns
        #: What has to be held of the log, and where that begins.
        self._held, self._base = context, base
        #: The state that is not complete, and whether it was told.
        self._now = states.begin(context, base, is_whole)
        self._is_told = False
        self._let_go()
        self._is_told = any(self._last(is_open=True))

    @property
    def at(self) -> int:
        """How far it has come."""
        return self._base + len(self._held)

    @property
    def _begin(self) -> int:
        return self._now.at - self._base

    def feed(self, offset: int, data: bytes) -> Iterator[Found]:
        """The matches in the states that `data` completes. All of them have to be taken."""
        if offset != self.at:  # what lay between was dropped
            self._held, self._base, self._now, self._is_told = b"", offset, Begin(offset, True), False
        searched = max(self._begin, len(self._held))
        self._held += data
        raw = self._held
        for cut in states.cuts(raw, self._base, self._begin):
            yield from self._part(raw, searched, cut)
            yield from self._turn(self._look(raw, self._begin, cut, is_open=True), self._base + cut, True)
            searched = cut
        yield from self._part(raw, searched, len(raw))
        self._let_go()

    def peek(self) -> Iterator[Found]:
        """The match in the state that is not complete, if it is one whatever follows."""
        return self._last(is_open=True)

    def finish(self) -> Iterator[Found]:
        """The match in the last state, to which nothing is added any more."""
        return self._last(is_open=False)

    def match(self, found: Found, stream: str) -> Match:
        """The match with its pattern and text, 2,000 characters around what matched."""
        line = found.text[found.text_start : found.text_stop]
        pattern, span = found.first or self._patterns.first(line)
        text, column, _, is_cut = shown(Line(0, 0, line, 0, len(line), span))
        start, stop = found.start, found.stop
        if is_cut and stop - start == len(line):  # it stands in the log as it is shown: say where that is
            start += span.start - len(text[:column].encode())
            stop = start + len(text.encode())
        return Match(stream, start, stop, pattern, text, is_cut)

    def _last(self, is_open: bool) -> Iterator[Found]:
        begin, end = self._begin, len(self._held)
        found = self._look(self._held, begin, end, is_open) if begin < end else None
        if found is not None:
            self._is_told = True
            yield found

    def _turn(self, found: Found | None, at: int, is_inside: bool) -> Iterator[Found]:
        """Go on with the next state, which begins at `at`."""
        self._now, self._is_told = Begin(at, is_inside), False
        if found is not None:
            yield found

    def _let_go(self) -> None:
        """What is not needed any more: all but what comes just before the state that is not complete."""
        size = self._begin - (states.OVERLAP if self._now.is_inside else 1)
        if size > 0:
            self._held, self._base = self._held[size:], self._base + size

    def _part(self, raw: bytes, searched: int, stop: int) -> Iterator[Found]:
        """The states that end before `stop`, and none before `searched`. The first may have been looked at in part."""
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
            self._now, self._is_told = Begin(base + last, False), False

    def _look(self, raw: bytes, start: int, stop: int, is_open: bool) -> Found | None:
        """The match in one state, if that was not told yet."""
        if self._is_told:
            return None
        before = raw[max(0, start - states.OVERLAP) : start] if self._now.is_inside else b""
        text = states.text_of(before + raw[start:stop], is_open)
        context = states.text_of(before, True) if before else b""
        found = self._in_versions(text, context, is_open) if b"\b" in text else self._in_text(text, context, is_open)
        return found and Found(self._base + start, self._base + stop, found[0], 0, len(found[0]), found[1])

    def _in_text(self, text: bytes, context: bytes, is_open: bool) -> tuple[bytes, First] | None:
        """The text with the pattern that matches in it behind its context."""
        begin = len(text.decode()[:1].encode()) if self._now.is_inside else 0
        if begin == 0 and self._now.is_inside:
            return None
        first = self._patterns.in_text(text, begin, len(context), is_open)
        return first and (text, first)

    def _in_versions(self, text: bytes, context: bytes, is_open: bool) -> tuple[bytes, First] | None:
        """As `_in_text`, in the first version of the text that there is one in."""
        *_, context_now = states.versions(context.decode())
        left = _VERSIONS
        for version, is_last in states.versions_marked(text.decode()):
            found = self._in_text(version.encode(), context_now.encode(), is_open or not is_last)
            left -= len(version)
            if found is not None or left < 0:
                return found
        return None

    def _block(self, raw: bytes, start: int, stop: int) -> Iterator[Found]:
        """Whole states that nobody has looked at yet."""
        if raw[start - 1 : start] == b"\n" and blocks.is_plain(raw):  # which saves a copy
            yield from self._plain(raw, start, stop, raw, 0)
            return
        while start < stop:
            end = raw.find(b"\n", start + _PIECE, stop) + 1 or stop
            yield from self._piece(raw, start, raw[start:end])
            start = end

    def _plain(self, raw: bytes, start: int, stop: int, text: bytes, shift: int) -> Iterator[Found]:
        """Lines that are their own text, as they stand in `text`, which is `raw` from `shift` on."""
        for line in self._patterns.lines(text, start - shift, stop - shift - 1):
            begin, end = line.start + shift, line.stop + shift
            if states.counts(raw, self._base, begin, end, end + 1):
                yield Found(self._base + begin, self._base + end, text, line.start, line.stop, None)

    def _piece(self, raw: bytes, start: int, piece: bytes) -> Iterator[Found]:
        """States of which some are not plain: their texts, found again among the bytes by their number."""
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
            begin, (end, following) = start + ends[number][1], ends[number + 1]
            if states.counts(raw, self._base, begin, start + end, start + following):
                yield Found(self._base + begin, self._base + start + end, text, line.start, line.stop, None)

    def _one_by_one(self, raw: bytes, start: int, ends: list[tuple[int, int]]) -> Iterator[Found]:
        begin = start
        for end, following in ends:
            self._now, self._is_told = Begin(self._base + begin, False), False
            if states.counts(raw, self._base, begin, start + end, start + following):
                found = self._look(raw, begin, start + end, is_open=False)
                if found is not None:
                    yield found
            begin = start + following
