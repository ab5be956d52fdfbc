"""One question: which lines of a stream match behind a byte. Looked into a moment at a time, so that others get theirs.

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

#: How long one turn takes, more or less, and how long a question is looked into before it is told how far that got.
TURN = 0.01
_LONG = 0.25
#: As many matches, and characters of them, are told; what lies between them and the newest is counted.
MOST_MATCHES = 1000
_MOST_TEXT = 256 << 10
#: What is read at a time; less where the patterns are slow.
_LEAST = 4 << 10


class Question(NamedTuple):
    process_id: str
    stream: str
    after: int
    upto: int | None
    is_final: bool


class Job:
    """`scanner`: one that has come as far as `after` already, if there is one."""

    def __init__(self, question: Question, patterns: Patterns, log: Log, scanner: Scanner | None) -> None:
        self.question = question
        self._log = log
        self.scanner = scanner or _taken_up(log, patterns, question.after)
        self.matches: list[Match] = []
        #: Matches that are counted alone.
        self.more = 0
        self._newest: Found | None = None
        self._room = _MOST_TEXT
        self._spent = 0.0
        self._size = CHUNK
        self.is_complete = False

    @property
    def upto(self) -> int:
        return self.scanner.at

    def turn(self) -> bool:
        """Look on for a moment. Whether there is something to tell: a match, the end, or that it takes long."""
        begun = time.monotonic()
        while not self.is_complete and time.monotonic() < begun + TURN:
            self._step()
        self._spent += time.monotonic() - begun
        self._take(self.scanner.finish() if self.is_complete and self.question.is_final else self.scanner.peek())
        return self.is_complete or bool(self.matches) or self._spent > _LONG

    def told(self) -> list[Match]:
        """The matches, the newest of all at last."""
        newest = [] if self._newest is None else [self.scanner.told(self._newest, self.question.stream)]
        return [*self.matches, *newest]

    def close(self) -> None:
        self._log.close()

    def _step(self) -> None:
        at, upto = self.scanner.at, self.question.upto
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
            if len(self.matches) < MOST_MATCHES - 1 and self._room > 0:
                self.matches.append(self.scanner.told(one, self.question.stream))
                self._room -= len(self.matches[-1].output)
                continue
            self.more += self._newest is not None
            self._newest = one


def _taken_up(log: Log, patterns: Patterns, after: int) -> Scanner:
    """A scanner that has come as far as `after`, or as what is left behind it."""
    first, end = log.extent()
    if not first < after <= end:  # nothing is left of what was before, or what is there is not what was
        at = max(first, after)
        return Scanner(patterns, b"", at, True)
    base = max(first, after - states.LOOKBACK)
    context = lines.read_all(log, base, after)
    return Scanner(patterns, context, after - len(context), len(context) < states.LOOKBACK)
