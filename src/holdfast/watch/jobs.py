"""One scan: which lines of a stream match behind a byte. It works for a moment at a time, so that others get a turn.

Everything here blocks on files alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from holdfast.logs.matcher import LogMatch, StateMatch, StreamMatcher
from holdfast.logs.reader import CHUNK, Log
from holdfast.model.notices.watching import WatchMatch
from holdfast.watch.patterns import Patterns

#: How long one turn takes, more or less, and how long a scan runs before it is answered with how far it got.
TURN = 0.01
_LONG = 0.25
#: As many matches, and characters of them, are listed. Those between them and the newest are counted.
MOST_MATCHES = 1000
_MOST_TEXT = 256 << 10
#: What is read at a time; less where the patterns are slow.
_LEAST = 4 << 10


class ScanRequest(NamedTuple):
    process_id: str
    stream: str
    after: int
    upto: int | None
    is_final: bool


class ScanJob:
    """`matcher`: one that has come as far as `after` already, if there is one."""

    def __init__(self, request: ScanRequest, patterns: Patterns, log: Log, matcher: StreamMatcher | None) -> None:
        self.request = request
        self._log = log
        self.matcher = matcher or StreamMatcher.resume(patterns, log, request.after)
        self._matches: list[WatchMatch] = []
        #: Matches that are only counted.
        self.more = 0
        self._newest: StateMatch | None = None
        self._text_left = _MOST_TEXT
        self._spent = 0.0
        self._size = CHUNK
        self.is_complete = False

    @property
    def upto(self) -> int:
        return self.matcher.at

    def turn(self) -> bool:
        """Scan for a moment. Whether there is something to report: a match, the end, or that it takes long."""
        begun = time.monotonic()
        while not self.is_complete and time.monotonic() < begun + TURN:
            self._step()
        self._spent += time.monotonic() - begun
        self._take(self.matcher.finish() if self.is_complete and self.request.is_final else self.matcher.peek())
        return self.is_complete or bool(self._matches) or self._spent > _LONG

    def result(self) -> list[WatchMatch]:
        """The matches; the last one is the newest of all."""
        newest = [] if self._newest is None else [self._match(self._newest)]
        return [*self._matches, *newest]

    def close(self) -> None:
        self._log.close()

    def _step(self) -> None:
        at, upto = self.matcher.at, self.request.upto
        limit = self._size if upto is None else min(self._size, upto - at)
        chunk = self._log.read(at, limit) if limit > 0 else None
        if chunk is None or not chunk.data or (upto is not None and chunk.offset >= upto):
            self.is_complete = True
            return
        data = chunk.data if upto is None else chunk.data[: upto - chunk.offset]
        begun = time.monotonic()
        self._take(self.matcher.feed(chunk.offset, data))
        self._adapt(time.monotonic() - begun)

    def _adapt(self, took: float) -> None:
        if took > TURN:
            self._size = max(_LEAST, self._size // 2)
        elif took < TURN / 4:
            self._size = min(CHUNK, self._size * 2)

    def _take(self, found: Iterable[StateMatch]) -> None:
        for one in found:
            if len(self._matches) < MOST_MATCHES - 1 and self._text_left > 0:
                self._matches.append(self._match(one))
                self._text_left -= len(self._matches[-1].output)
                continue
            self.more += self._newest is not None
            self._newest = one

    def _match(self, found: StateMatch) -> WatchMatch:
        return match_of(self.matcher.shown(found), self.request.stream)


def match_of(shown: LogMatch, stream: str) -> WatchMatch:
    """The match with its place in the log. Of a long line that stands there as it is shown, that is the shown part."""
    start, stop = shown.start, shown.stop
    if shown.is_cut and shown.match is not None and shown.is_raw:
        start = shown.match - len(shown.text[: shown.column].encode())
        stop = start + len(shown.text.encode())
    return WatchMatch(stream, start, stop, shown.pattern, shown.text, shown.is_cut)
