"""Output for a model: as much as fits, with where it is in the log and how to read the rest."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.client.results.page import line_start, text_of
from holdfast.model import shortening
from holdfast.model.shortening import CharacterBudget

if TYPE_CHECKING:
    from holdfast.client.aio import AsyncClient
    from holdfast.client.results.page import LogPage

#: A log of up to this size is read as a whole, so that progress is collapsed; of a longer one, both ends are read.
_WHOLE = 4 << 20
_HEAD, _TAIL = 256 << 10, 512 << 10
#: Sizes in which a short tail is searched, the largest first.
_TAILS = (64 << 10, 16 << 10, 4096)
#: How much is read of the rest of a line.
_LINE = 8 << 10
_LINE_END = re.compile(rb"[\r\n]")


class Shown(NamedTuple):
    """Output as it is shown. `start` and `end` are bytes of the log, `omitted` is kept but not shown."""

    text: str
    start: int
    end: int
    total: int
    omitted: int
    is_folded: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether the text has all of it: nothing is left out in between."""
        return not self.is_folded and shortening.MARK not in self.text

    def fields(self) -> dict[str, Any]:
        """For an answer. Only `output` where there is no output at all."""
        if not self.total:
            return {"output": self.text}
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        where = f"bytes {self.start}-{self.end} of {self.total}, {now}"
        folded = "log with offset and limit shows the lines that are folded" if self.is_folded else None
        return {"output": self.text, "source": where, "omitted_bytes": self.omitted or None, "folded": folded}


async def whole(client: AsyncClient, process_id: str, size: int, budget: CharacterBudget) -> Shown:
    """All output, or its beginning and its end."""
    if size <= _WHOLE:
        page = await client.logs(process_id, offset=0, bytes=_WHOLE)
        if page.end >= page.total:
            return fitted(page, budget, 0)
    first = await client.logs(process_id, offset=0, bytes=_HEAD)
    last = await client.logs(process_id, bytes=_TAIL)
    unread = max(0, last.start - first.end)
    short = shortening.excerpt_of_ends(first.text, unread, last.text, budget, process_id)
    return Shown(short.text, first.start, last.end, last.total, unread, short.is_folded)


def fitted(page: LogPage, budget: CharacterBudget, first_line: int | None = None) -> Shown:
    """A page of a log. `first_line` is the number of its first line, where that is known."""
    short = shortening.excerpt_of_text(page.text, budget, page.process_id, first_line)
    return Shown(short.text, page.start, page.end, page.total, page.omitted, short.is_folded)


async def tail(client: AsyncClient, process_id: str, characters: int, most: int = _TAILS[0]) -> Shown:
    """The end of the output, from the start of a line on; looked for in `most` bytes."""
    page = await client.logs(process_id, bytes=most)
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
    return Shown(text, start, page.end, page.total, max(0, start - page.dropped))


async def line_end(client: AsyncClient, process_id: str, offset: int) -> int:
    """The byte behind the line that this byte is in, as far as it is written."""
    page = await client.logs(process_id, offset=offset, bytes=_LINE, raw=True)
    found = _LINE_END.search(page.data)
    return page.start + (found.end() if found is not None else len(page.data))


async def last_line(client: AsyncClient, process_id: str) -> str:
    """The last line with text in it, secrets not masked."""
    shown = await tail(client, process_id, 1000, most=4096)
    return next((line.strip() for line in reversed(shown.text.splitlines()) if line.strip()), "")
