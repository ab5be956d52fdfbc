"""One scan: which lines of a stream match behind a byte. It works for a moment at a time, so that others get a turn.

Everything here blocks on files alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from holdfast.logs import lines
from holdfast.logs.reader import CHUNK, Log
from holdfast.model.watching import Match
from holdfast.watch import states
from holdfast.watch.patterns import Patterns
from holdfast.watch.scanner import Found, Scanner

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
    """`scanner`: one that has come as far as `after` already, if there is one."""

    def __init__(self, request: ScanRequest, patterns: Patterns, log: Log, scanner: Scanner | None) -> None:
        self.request = request
        self._log = log
        self.scanner = scanner or _resumed(log, patterns, request.after)
        self._matches: list[Match] = []
        #: Matches that are only counted.
        self.more = 0
        self._newest: Found | None = None
        self._text_left = _MOST_TEXT
        self._spent = 0.0
        self._size = CHUNK
        self.is_complete = False

    @property
    def upto(self) -> int:
        return self.scanner.at

    def turn(self) -> bool:
        """Scan for a moment. Whether there is something to report: a match, the end, or that it takes long."""
        begun = time.monotonic()
        while not self.is_complete and time.monotonic() < begun + TURN:
            self._step()
        self._spent += time.monotonic() - begun
        self._take(self.scanner.finish() if self.is_complete and self.request.is_final else self.scanner.peek())
        return self.is_complete or bool(self._matches) or self._spent > _LONG

    def result(self) -> list[Match]:
        """The matches; the last one is the newest of all."""
        newest = [] if self._newest is None else [self.scanner.match(self._newest, self.request.stream)]
        return [*self._matches, *newest]

    def close(self) -> None:
        self._log.close()

    def _step(self) -> None:
        at, upto = self.scanner.at, self.request.upto
        limit = self._size if upto is None else min(self._size, upto - at)
        chunk = self._log.read(at, limit) if limit > 0 else None
        if chunk is None or not chunk.data or (upto is not None and chunk.offset >= upto):
            self.is_complete = True
            return
        data = chunk.data if upto is None else chunk.data[: upto - chunk.offset]
        begun = time.monotonic()
        self._take(self.scanner.feed(chunk.offset, data))
        self._adapt(time.monotonic() - begun)

    def _adapt(self, took: float) -> None:
        if took > TURN:
            self._size = max(_LEAST, self._size // 2)
        elif took < TURN / 4:
            self._size = min(CHUNK, self._size * 2)

    def _take(self, found: Iterable[Found]) -> None:
        for one in found:
            if len(self._matches) < MOST_MATCHES - 1 and self._text_left > 0:
                self._matches.append(self.scanner.match(one, self.request.stream))
                self._text_left -= len(self._matches[-1].output)
                continue
            self.more += self._newest is not None
            self._newest = one


def _resumed(log: Log, patterns: Patterns, after: int) -> Scanner:
    """A scanner that has come as far as `after`, or as what is left behind it."""
    first, end = log.extent()
    if not first < after <= end:  # nothing is left of what was before, or the log is another one
        return Scanner(patterns, b"", max(first, after), True)
    base = max(first, after - states.LOOKBACK)
    context = lines.read_all(log, base, after)
    return Scanner(patterns, context, after - len(context), len(context) < states.LOOKBACK)
