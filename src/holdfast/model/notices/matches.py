"""Lines of output that matched a watch, and summaries of those that are held back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from holdfast.model.notices import lenient
from holdfast.records import Struct, replace

#: The most that one notification shows.
MOST_LINES = 20
MOST_CHARACTERS = 2000


class WatchMatch(Struct, frozen=True):
    """One line that matched."""

    stream: str
    offset: int
    """Where the line begins in the log of its stream."""
    end: int
    """Where it ends, before its line end: these bytes are `output`, but for escape codes."""
    pattern: str
    output: str
    """The line in the text view, without its line end."""
    is_cut: bool = False
    """Whether the line is longer than `output`."""

    def clipped(self, characters: int = MOST_CHARACTERS) -> WatchMatch:
        """The same, with at most `characters` of the beginning of the line."""
        if len(self.output) <= characters:
            return self
        return replace(self, output=self.output[:characters], is_cut=True)

    def to_json(self) -> dict[str, Any]:
        """Stored, and shown to clients."""
        fields = {"stream": self.stream, "offset": self.offset, "end": self.end}
        return {**fields, "pattern": self.pattern, "output": self.output, "output_cut": self.is_cut}

    @classmethod
    def from_json(cls, value: object) -> WatchMatch:
        """Never fails: invalid fields become empty."""
        fields = lenient.table(value)
        stream, offset = lenient.text(fields.get("stream")), lenient.whole(fields.get("offset"))
        end = max(offset, lenient.whole(fields.get("end")))
        pattern, output = lenient.text(fields.get("pattern")), lenient.text(fields.get("output"))
        return cls(stream, offset, end, pattern, output, fields.get("output_cut") is True)


class Held(Struct, frozen=True):
    """Matches that were held back: how many, the first, and the newest."""

    count: int
    first: WatchMatch
    newest: WatchMatch

    @classmethod
    def of(cls, found: Sequence[WatchMatch], more: int = 0) -> Held:
        """Some matches, and `more` after them that were only counted."""
        return cls(len(found) + more, found[0].clipped(), found[-1].clipped())

    def and_then(self, later: Held) -> Held:
        """Both together."""
        return Held(self.count + later.count, self.first, later.newest)

    def clipped(self, characters: int) -> Held:
        return Held(self.count, self.first.clipped(characters), self.newest.clipped(characters))

    def to_json(self) -> dict[str, Any]:
        return {"count": self.count, "first": self.first.to_json(), "newest": self.newest.to_json()}

    @classmethod
    def from_json(cls, value: object) -> Held | None:
        """None when it counts no match."""
        fields = lenient.table(value)
        count = lenient.whole(fields.get("count"))
        return (
            cls(count, WatchMatch.from_json(fields.get("first")), WatchMatch.from_json(fields.get("newest")))
            if count
            else None
        )


def joined(before: Held | None, later: Held) -> Held:
    return before.and_then(later) if before is not None else later


def that_fit(found: Sequence[WatchMatch]) -> tuple[WatchMatch, ...]:
    """As many of the first matches as one notification shows; at least one."""
    shown: list[WatchMatch] = []
    lines, characters = 0, 0
    for match in found:
        clipped = match.clipped()
        lines += clipped.output.count("\n") + 1
        characters += len(clipped.output) + 1
        if shown and (lines > MOST_LINES or characters > MOST_CHARACTERS + 1):
            break
        shown.append(clipped)
    return tuple(shown)


def in_a_row(found: Sequence[WatchMatch]) -> int:
    """How many of the first matches follow each other in the log with nothing between them but a line end."""
    for number, (before, after) in enumerate(pairwise(found), 1):
        if before.stream != after.stream or before.end + 1 != after.offset or before.is_cut:
            return number
    return len(found)
