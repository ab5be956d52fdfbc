"""Looking for a plain text, from its rarest letter on.

RE2 looks for the first letter of a text at the speed of memory, and then at the rest: a frequent first letter makes it
slow. So the text is looked for from the letter on that a sample of the log has least of.
"""

from __future__ import annotations

from holdfast.logs.pattern import Pattern, compile_literal

_SAMPLE = 16 << 10
#: What is looked for is not shorter than this, if the text is not.
_SHORTEST = 4


class Text:
    """One text. Learns from the first block which part of it to look for."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._skipped = 0
        self._tail: Pattern | None = None

    def find(self, data: bytes, at: int, stop: int) -> int:
        """Where it first stands within `at` to `stop`; -1 where it does not."""
        tail = self._tail or self._learn(data)
        skipped = self._skipped
        while at + skipped <= stop and (span := tail.find(data, at + skipped, stop)) is not None:
            start = span.start - skipped
            if data.startswith(self.text, start):
                return start
            at = start + 1
        return -1

    def _learn(self, data: bytes) -> Pattern:
        sample, text = data[:_SAMPLE], self.text
        starts = range(max(1, len(text) - _SHORTEST + 1))
        self._skipped = min(starts, key=lambda n: sample.count(text[n : n + 1]))
        self._tail = compile_literal(text[self._skipped :])
        return self._tail
