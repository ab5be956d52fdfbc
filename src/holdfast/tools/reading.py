"""Output for a model: as much as there is room for, with where it comes from and how to read the rest."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.client.page import line_start, text_of
from holdfast.model import shortening
from holdfast.model.shortening import CharacterBudget, Short

if TYPE_CHECKING:
    from holdfast.client.aio import AsyncClient
    from holdfast.client.page import LogPage
    from holdfast.client.process import Process

#: A log of up to this size is read as a whole, so that progress is collapsed; of a longer one both ends are.
_WHOLE = 4 << 20
_HEAD, _TAIL = 256 << 10, 512 << 10
#: A short tail is looked for in so many bytes, the most first.
_TAILS = (64 << 10, 16 << 10, 4096)


class Shown(NamedTuple):
    """Output as it is shown. `start` and `end` are bytes of the log, `omitted` what is kept and not shown of it."""

    text: str
    start: int
    end: int
    total: int
    omitted: int
    process: Process | None = None
    is_folded: bool = False

    def fields(self) -> dict[str, Any]:
        """For an answer. Nothing where there is no output at all."""
        if not self.total:
            return {"output": self.text}
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        where = f"bytes {self.start}-{self.end} of {self.total}, {now}"
        folded = "log with offset and limit shows the lines that are folded" if self.is_folded else None
        return {"output": self.text, "source": where, "omitted_bytes": self.omitted or None, "folded": folded}


async def whole(client: AsyncClient, process_id: str, size: int, room: CharacterBudget, begin: int = 0) -> Shown:
    """All output from byte `begin` on, or its beginning and its end."""
    if size - begin <= _WHOLE:
        page = await client.logs(process_id, offset=begin, bytes=_WHOLE)
        if page.end >= page.total:
            return fitted(page, room, 0)
    first = await client.logs(process_id, offset=begin, bytes=_HEAD)
    last = await client.logs(process_id, bytes=_TAIL)
    unread = max(0, last.start - first.end)
    head, tail = shortening.fold(first.text), shortening.fold(last.text)
    short = shortening.join(head, unread, tail, room)
    is_folded = head != first.text or tail != last.text
    return Shown(_told(short, process_id, 0), first.start, last.end, last.total, unread, last.process, is_folded)


def fitted(page: LogPage, room: CharacterBudget, first_line: int | None = None) -> Shown:
    """A page of a log. `first_line` is the number of its first line, where that is known."""
    text = page.text if shortening.fits(page.text, room) else shortening.fold(page.text)
    short = shortening.shorten(text, room)
    shown = _told(short, page.process_id, first_line)
    return Shown(shown, page.start, page.end, page.total, page.omitted, page.process, text != page.text)


async def tail(client: AsyncClient, process_id: str, characters: int) -> Shown:
    """The end of the output, from the begin of a line on."""
    page = await client.logs(process_id, bytes=_TAILS[0])
    for size in (*_TAILS, characters):
        data = page.data[-size:]
        if size < len(page.data):
            data = data[line_start(data) :]
        text = text_of(data)
        if len(text) <= characters:
            break
    else:
        text = text[-characters:]
    start = page.end - len(data)
    return Shown(text, start, page.end, page.total, max(0, start - page.dropped), page.process)


def _told(short: Short, process_id: str, first_line: int | None) -> str:
    """The text, with what was left out of it and how to read that."""
    if not short.left_out:
        return short.head
    lines = f", {short.lines} lines" if short.lines else ""
    how = f"process(action='log', session_id='{process_id}'"
    if first_line is None or "\n" not in short.head:
        how += ", data='bytes', offset=…)"
    else:
        how += f", offset={first_line + shortening.lines_in(short.head)})"
    line = "" if short.head.endswith("\n") or not short.head else "\n"
    return f"{short.head}{line}[… {short.left_out} characters{lines} left out: {how} …]\n{short.tail}"
