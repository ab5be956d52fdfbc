"""Text without what only a terminal understands, with the way back to where each character stood. No I/O."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate

Span = tuple[int, int]

#: Control characters but tab and newline, and characters without width.
_CONTROL = r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9a\x9c-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060\ufeff]+"
#: With escape sequences; none reaches over a line.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~]?)"
    rf"|\x9b[0-?]*[ -/]*[@-~]?|{_CONTROL}"
)
_CONTROLS = re.compile(rf"(?:[\x1b\x9b]|{_CONTROL})+")
_SPACE = re.compile(r"\s+")


class Bare:
    """`text` is what is left. `whence` tells where a part of it stands in the original."""

    def __init__(self, original: str, noise: re.Pattern[str]) -> None:
        self._original = original
        self._noise = noise
        self.text = noise.sub("", original)

    def whence(self, start: int, end: int) -> Span:
        """The span in the original of a span that is not empty."""
        return self._index(start), self._index(end - 1) + 1

    def _index(self, at: int) -> int:
        starts, sums = self._pieces
        piece = bisect_right(sums, at, hi=len(starts)) - 1
        return starts[piece] + at - sums[piece]

    @cached_property
    def _pieces(self) -> tuple[list[int], list[int]]:
        """Where each piece begins in the original, and in what is left. Mostly nobody asks."""
        cuts = [match.span() for match in self._noise.finditer(self._original)]
        starts = [0, *(end for _, end in cuts)]
        ends = [*(start for start, _ in cuts), len(self._original)]
        return starts, [0, *accumulate(end - start for start, end in zip(starts, ends, strict=True))]


def views(text: str) -> tuple[Bare, ...]:
    """The text as a terminal shows it; where that hides something, also with what it hides."""
    shown = Bare(text, _ESCAPES)
    return (shown, Bare(text, _CONTROLS)) if "\x1b" in text or "\x9b" in text else (shown,)


def without_space(text: str) -> Bare:
    return Bare(text, _SPACE)
