"""A page of a log: a part that fits in memory, with its position and how to read the rest."""

from __future__ import annotations

from holdfast.client.process import Process
from holdfast.model.text import TextView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.link import Output
    from holdfast.wire.frames import Message


class LogPage:
    """Bytes `start` to `end` of a log: `data` as they are, `text` as a terminal shows them.

    `total` counts all that was ever written, `dropped` what is no longer kept of it, `omitted` what is kept but not
    on this page. `cursor` is where the following page begins. `unchanged`: there is nothing from the cursor on that
    this page was asked for with.
    """

    __slots__ = (
        "data",
        "text",
        "start",
        "end",
        "total",
        "dropped",
        "omitted",
        "upto",
        "closed",
        "process_id",
        "process",
        "torn",
    )

    def __init__(self, data: bytes, text: str, start: int, end: int, answer: Message, torn: int = 0) -> None:
        self.data = data
        self.text = text
        self.start = start
        self.end = end
        self.dropped: int = answer.get("first") or 0
        self.total: int = max(answer.get("total") or 0, end)
        self.omitted = max(0, self.total - self.dropped - len(data))
        #: Where the part that was asked for ends.
        self.upto: int = answer.get("upto") or 0
        #: Whether nothing more can follow.
        self.closed = bool(answer.get("closed"))
        #: The process at that time; None on a page without anything new.
        self.process = Process(answer["process"]) if "process" in answer else None
        self.process_id: str = answer["id"] if self.process is None else self.process.id
        #: Bytes left out at the beginning: the rest of a line of which the head was dropped.
        self.torn = torn

    @property
    def cursor(self) -> int:
        return self.end

    @property
    def next_offset(self) -> int:
        return self.end

    @property
    def unchanged(self) -> bool:
        return not self.data

    @property
    def note(self) -> str:
        """What is not on this page and how to read it; empty when it is the whole log."""
        parts = []
        if self.dropped:
            parts.append(f"the first {self.dropped} bytes are no longer kept")
        if self.torn:
            parts.append(f"{self.torn} bytes of a line that lost its begin are left out (raw shows them)")
        elif self.start > self.dropped:
            parts.append(f"{self.start - self.dropped} bytes before this page: read from offset {self.dropped}")
        if self.end < self.total:
            parts.append(f"{self.total - self.end} bytes after it: read from offset {self.end}")
        return "; ".join(parts)

    def to_json(self) -> Message:
        fields = ("text", "start", "end", "total", "dropped", "omitted", "cursor", "next_offset", "closed", "note")
        return {"id": self.process_id, **{name: getattr(self, name) for name in fields}}

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<LogPage {self.process_id} {self.start}..{self.end} of {self.total}>"


def make_page(
    answer: Message,
    output: list[Output],
    *,
    raw: bool,
    at_line_start: bool,
    at_line_end: bool,
    lost_head: bool = False,
) -> LogPage:
    """The page in the answer to `logs`, cut to whole lines at the ends that may be moved, and to whole characters.

    A page that may begin later was asked for from one byte before, so that a line that begins with it is kept. One that
    begins where the head of the log was dropped begins with the next line, if there is one.
    """
    data = b"".join([piece.data for piece in output])
    start = output[0].offset if output else answer.get("start") or 0
    end = output[-1].end if output else start
    if at_line_start:
        cut = line_start(data)
        data, start = data[cut:], start + cut
    torn = whole_line(data) if lost_head else 0
    data, start = data[torn:], start + torn
    if not raw:
        kept = line_end(data) if at_line_end else len(data) if answer.get("closed") else whole_characters(data)
        data, end = data[:kept], end - len(data) + kept
    return LogPage(data, data.decode(errors="replace") if raw else text_of(data), start, end, answer, torn)


def text_of(data: bytes) -> str:
    view = TextView()
    return view.feed(data) + view.close()


def whole_line(data: bytes) -> int:
    """Where the first line begins that is whole; where none does, the first character that is."""
    cut = data.find(b"\n") + 1
    if 0 < cut < len(data):
        return cut
    return next((at for at in range(min(4, len(data))) if not 0x80 <= data[at] < 0xC0), 0)


def line_start(data: bytes) -> int:
    """Where the first line begins after the first byte; where none does, the second byte."""
    cut = data.find(b"\n") + 1
    return cut if 0 < cut < len(data) else min(1, len(data))


def whole_characters(data: bytes) -> int:
    """How much of `data` is whole characters: less than all when the last one is still being written."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            needs = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4 if byte < 0xF8 else 0
            return len(data) - back if needs > back else len(data)
        if byte < 0x80:
            break
    return len(data)


def line_end(data: bytes) -> int:
    """How much of `data` is whole lines; of a single longer line, how much is whole characters."""
    lines = data.rfind(b"\n") + 1
    if lines:
        return lines
    for back in range(1, min(4, len(data)) + 1):
        if data[-back] >= 0xC0:
            return len(data) - back
        if data[-back] < 0x80:
            break
    return len(data)
