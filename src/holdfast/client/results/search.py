"""The results of a search, and its requests page by page. No I/O."""

from __future__ import annotations

from holdfast.client.link import Done, Failed
from holdfast.client.reading import Followed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.client.link import Answer
    from holdfast.client.reading import AskNow
    from holdfast.wire.frames import Message

_PAGE = 1000


class Match:
    """A line that matches. Offsets are byte positions in the log, `line` counts from 0; unknown ones are None.

    `text` is the line as a terminal shows it, 2,000 characters at most (`cut` says if it has more); the match is
    `text[column : column + length]`. `match_offset` is None where escape codes or overwriting keep the shown match
    from being in the log. `before` and `after` are lines around it.
    """

    __slots__ = (
        *("stream", "line", "offset", "end", "match_offset", "text", "column", "length", "cut", "before", "after"),
    )

    def __init__(self, fields: Message) -> None:
        self.stream: str = fields.get("stream") or "out"
        self.line: int | None = fields.get("line")
        self.offset: int = fields["offset"]
        self.end: int | None = fields.get("end")
        self.match_offset: int | None = fields.get("match_offset")
        self.text: str = fields["text"]
        self.column: int = fields.get("column") or 0
        self.length: int = fields.get("length") or 0
        self.cut = bool(fields.get("cut"))
        self.before = [Match(line) for line in fields.get("before", ())]
        self.after = [Match(line) for line in fields.get("after", ())]

    @property
    def match(self) -> str:
        return self.text[self.column : self.column + self.length]

    def to_json(self) -> Message:
        fields = ("line", "offset", "match_offset", "text", "column", "length", "cut", "stream")
        shown: Message = {name: getattr(self, name) for name in fields}
        for side in ("before", "after"):
            if found := getattr(self, side):
                plain = ("line", "offset", "text", "cut")
                shown[side] = [{name: getattr(line, name) for name in plain} for line in found]
        return shown

    def __repr__(self) -> str:
        where = f"line {self.line}" if self.line is not None else f"byte {self.offset}"
        return f"<Match {where}: {self.text!r:.80}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Match) and other.to_json() == self.to_json()

    __hash__ = None  # type: ignore[assignment]


class Found:
    """What a search found. `truncated`: it stopped at its limit; `next_offset` is where it would go on."""

    __slots__ = (
        *("matches", "count", "truncated", "next_offset", "searched", "skipped", "dropped", "total", "long_lines"),
    )

    def __init__(self) -> None:
        self.matches: list[Match] = []
        #: How many lines match; with `truncated`, of what was searched.
        self.count = 0
        self.truncated = False
        self.next_offset = 0
        #: Bytes that were searched, and those that were dropped before that.
        self.searched = 0
        self.skipped = 0
        self.dropped = 0
        self.total = 0
        #: Lines of more than 1 MiB, which are searched in pieces.
        self.long_lines = 0

    @property
    def note(self) -> str:
        """What was not searched, and how to go on; empty when it was all."""
        parts = []
        if self.dropped:
            parts.append(f"the first {self.dropped} bytes are no longer kept")
        if self.skipped:
            parts.append(f"{self.skipped} bytes were dropped while it searched")
        if self.truncated:
            left = self.total - self.next_offset
            parts.append(f"stopped after {self.count} matches; {left} bytes are left: go on from {self.next_offset}")
        return "; ".join(parts)

    def to_json(self) -> Message:
        fields = ("count", "truncated", "next_offset", "searched", "skipped", "dropped", "total", "long_lines", "note")
        return {name: getattr(self, name) for name in fields}

    def __iter__(self) -> Iterator[Match]:
        return iter(self.matches)

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return self.count > 0

    def __repr__(self) -> str:
        return f"<Found {self.count} of {self.searched} bytes{', more' if self.truncated else ''}>"


class Searching(Followed[Match]):
    """One search, page by page. `limit` is None for all matches."""

    found: Found

    def __init__(self, asked: Message, limit: int | None) -> None:
        super().__init__("search", {key: value for key, value in asked.items() if value not in (None, False)})
        self.found = Found()
        self._limit = limit
        self._where: Message = {"from": asked.get("from")} if asked.get("from") is not None else {}

    def question(self) -> Message:
        left = _PAGE if self._limit is None else min(_PAGE, self._limit - len(self.found.matches))
        return {**self._arguments, **self._where, "limit": left}

    def begin(self, ask: AskNow) -> None:
        self._rid = ask("search", self.question())

    def take(self, answer: Answer, ask: AskNow, cancel: Callable[[int], None]) -> list[Match]:
        if answer.rid != self._rid or not isinstance(answer, Done | Failed):
            return []
        if isinstance(answer, Failed):
            raise answer.error
        self._cuts = 0
        matches = self.take_page(answer.value, keep=False)
        if not self.is_over:
            self.begin(ask)
        return matches

    def take_page(self, answer: Message, keep: bool) -> list[Match]:
        """The matches of a page; with `keep` they are collected, too."""
        found = self.found
        matches = [Match(fields) for fields in answer["matches"]]
        if keep:
            found.matches += matches
        elif self._limit is not None:
            self._limit -= len(matches)
        found.count += answer["count"]
        for key in ("searched", "skipped", "long_lines"):
            setattr(found, key, getattr(found, key) + answer[key])
        found.dropped, found.total = answer["first"], answer["total"]
        found.next_offset = answer["next"]["from"]
        self._go_on(answer)
        return matches

    def _go_on(self, answer: Message) -> None:
        upto = answer["upto"]
        self._where = {"from": answer["next"]["from"], "line": answer["next"]["line"], "upto": upto}
        left = None if self._limit is None else self._limit - len(self.found.matches)
        at_end = upto is not None and self.found.next_offset >= upto
        self.found.truncated = left is not None and left <= 0 and not answer["done"] and not at_end
        if answer["done"] or at_end or self.found.truncated:
            self.answer = answer
