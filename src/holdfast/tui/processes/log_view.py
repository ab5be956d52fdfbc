"""The output of a process: follow it, go to any byte, search it on the server. Only a window of it is held."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Coroutine
from functools import lru_cache
from typing import ClassVar

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message

from holdfast.client.aio import AsyncClient
from holdfast.client.results.search import Match
from holdfast.errors import HoldfastError
from holdfast.model.units import size_text
from holdfast.tui import paint
from holdfast.tui.processes.ansi_lines import line_text
from holdfast.tui.processes.log_window import LogLine, LogWindow
from holdfast.tui.widgets.lines_view import LinesView

_PIECE = 128 << 10
#: More than this, which fills a screen, is not read at once while the view follows: it goes on at the end.
_NEWEST = 16 << 10
#: The view is drawn at most this often while output comes.
_FRAME = 0.08
_WAIT = 20.0
_PAUSE = 1.0
_MOST_HITS = 1000

cached_line = lru_cache(maxsize=512)(line_text)


class LogView(LinesView):
    """`stream` is `out` or `err`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "lines(1)", show=False),
        Binding("k,up", "lines(-1)", show=False),
        Binding("pagedown,space,ctrl+f", "pages(1)", show=False),
        Binding("pageup,b,ctrl+b", "pages(-1)", show=False),
        Binding("g,home", "begin", show=False),
        Binding("G,end", "end", show=False),
        Binding("f", "follow", show=False),
        Binding("n", "hit(1)", show=False),
        Binding("N", "hit(-1)", show=False),
        Binding("left,h", "sideways(-1)", show=False),
        Binding("right", "sideways(1)", show=False),
    ]

    class LogChanged(Message):
        """What `status` says is different."""

    def __init__(self, client: AsyncClient, process: str, *, stream: str = "out", id: str | None = None) -> None:
        super().__init__(id=id)
        self._client = client
        self._process = process
        self._stream = stream
        self.window = LogWindow()
        self.is_following = True
        self.total = self.dropped = 0
        self.hits: list[Match] = []
        self.hit: int | None = None
        self._search = self._trouble = ""
        self._is_cut = self._is_loading = self._is_skipped = False
        self._left = self._new_lines = 0
        self._again = asyncio.Event()

    def on_mount(self) -> None:
        self.run_worker(self._run(), exit_on_error=False)

    # What the line below says.

    @property
    def status(self) -> str:
        self.settle()
        parts = []
        if self._trouble:
            parts.append(self._trouble)
        if self._search:
            at = f"{self.hit + 1} of " if self.hit is not None else ""
            parts.append(f"/{self._search}: {at}{len(self.hits):,}{'+' if self._is_cut else ''}")
        if self.is_following:
            parts.append("▼ following")
        elif self._new_lines:
            more = "+" if self._is_skipped else ""
            parts.append(f"▼ {self._new_lines:,}{more} new line{'' if self._new_lines == 1 else 's'}")
        offset = self.window.lines[self.top].offset if self.top < len(self.window.lines) else self.total
        parts.append(f"{size_text(self.total)} · byte {offset:,}")
        if self.dropped:
            parts.append(f"first {size_text(self.dropped)} no longer kept")
        return " · ".join(parts)

    # Reading.

    def wake(self) -> None:
        """The process runs again, or wrote something."""
        self._again.set()

    async def _page(self, offset: int, size: int) -> bytes:
        page = await self._client.logs(self._process, offset=offset, bytes=size, raw=True, stream=self._stream)
        self.total, self.dropped = max(self.total, page.total), page.dropped
        return page.data if page.start == offset else b""

    async def _run(self) -> None:
        """Load the end, then wait for more of it."""
        while True:
            try:
                await self._load_end()
                await self._follow()
            except HoldfastError as failed:
                self._trouble = failed.message
                self._drawn()
                await asyncio.sleep(_PAUSE)

    async def _load_end(self, size: int = _PIECE) -> None:
        page = await self._client.logs(self._process, bytes=size, raw=True, stream=self._stream)
        self.total, self.dropped, self._trouble = page.total, page.dropped, ""
        self.window.set(page.start, page.data, is_line_start=page.start <= page.dropped)
        if self.is_following:
            self.top = self.last_top
        self._drawn()

    async def _follow(self) -> None:
        while True:
            self._again.clear()
            asked = self.window.end if self.is_following else self.total
            page = await self._client.logs(
                self._process, offset=asked, bytes=_NEWEST, raw=True, stream=self._stream, wait=_WAIT
            )
            if not page.data:
                if page.closed:
                    await self._again.wait()
                continue
            self.total, self.dropped = page.total, page.dropped
            if not self.is_following:
                self._new_lines += page.data.count(b"\n")
                self._is_skipped = self._is_skipped or page.total > page.end
            elif page.start > self.window.end or page.total > page.end:
                await self._load_end(_NEWEST)
            else:
                self.window.append(page.data[self.window.end - page.start :])
                self.top = self.last_top
            self._drawn()
            await asyncio.sleep(self.app.pause(_FRAME))  # type: ignore[attr-defined]

    def settle(self) -> None:
        if self.is_following:
            self.top = self.last_top
        else:
            super().settle()

    def _drawn(self) -> None:
        self.post_message(self.LogChanged())
        self.refresh()

    # Moving.

    def count(self) -> int:
        return len(self.window.lines)

    def bar_range(self, total: int) -> tuple[int, int]:
        """By bytes of the whole log."""
        height, kept = self.size.height, max(1, self.total - self.dropped)
        if total <= height and self.window.first <= self.dropped:
            return 0, 0
        offset = self.window.lines[self.top].offset if self.top < len(self.window.lines) else self.total
        at = min(height - 1, round((height - 1) * (offset - self.dropped) / kept))
        return (height - 1, height) if self.is_following else (at, at + 1)

    def scroll_lines(self, by: int) -> None:
        if by < 0 and self.is_following and self.last_top > 0:
            self._unfollow()
        super().scroll_lines(by)
        if by < 0 and self.top < self.size.height and self.window.first > self.dropped:
            self._load(self._older())
        elif by > 0 and self.top >= self.last_top - self.size.height:
            if self.window.end < self.total:
                self._load(self._newer())
            elif self.top >= self.last_top and not self.is_following:
                self.action_follow()
        self.post_message(self.LogChanged())

    def _unfollow(self) -> None:
        self.is_following, self._new_lines, self._is_skipped = False, 0, False

    def _load(self, work: Coroutine[object, object, None]) -> None:
        """One at a time; a second one is not needed."""
        if self._is_loading:
            work.close()
            return
        self._is_loading = True
        self.run_worker(self._loaded(work), exit_on_error=False)

    async def _loaded(self, work: Coroutine[object, object, None]) -> None:
        try:
            await work
        except HoldfastError as failed:
            self._trouble = failed.message
        finally:
            self._is_loading = False
            self._drawn()

    async def _older(self) -> None:
        first = self.window.first
        start = max(self.dropped, first - _PIECE)
        data = await self._page(start, first - start)
        if data and self.window.first == first:
            self.top += self.window.prepend(start, data, is_line_start=start <= self.dropped)

    async def _newer(self) -> None:
        end = self.window.end
        data = await self._page(end, _PIECE)
        if data and self.window.end == end:
            self.top = max(0, self.top - self.window.append(data))

    async def go_to(self, offset: int) -> None:
        """Show the line that holds this byte."""
        self._unfollow()
        if not self.window.first <= offset < self.window.end:
            start = max(self.dropped, offset - _PIECE // 2)
            data = await self._page(start, _PIECE)
            self.window.set(start, data, is_line_start=start <= self.dropped)
        at = self.window.index_of(offset)
        self.top = max(0, min(at - self.size.height // 3, self.last_top))

    def action_lines(self, by: int) -> None:
        self.scroll_lines(by)

    def action_pages(self, by: int) -> None:
        self.scroll_lines(by * max(1, self.size.height - 1))

    def action_begin(self) -> None:
        self._load(self._to_begin())

    async def _to_begin(self) -> None:
        await self.go_to(self.dropped)
        self.top = 0

    def action_end(self) -> None:
        self.is_following = False
        self.action_follow()

    def action_follow(self) -> None:
        self.is_following = not self.is_following
        self._new_lines = 0
        if self.is_following:
            self._load(self._load_end())
        self._drawn()

    def action_sideways(self, by: int) -> None:
        self._left = max(0, self._left + by * max(1, self.inner_width // 2))
        self.refresh()

    # Searching, on the server.

    def search(self, pattern: str) -> None:
        """Find lines that match; small letters match both. An empty pattern ends the search."""
        self.hits, self.hit, self._search, self._trouble = [], None, pattern, ""
        if pattern:
            self._trouble = "searching…"
            self.run_worker(self._find(pattern), group="search", exclusive=True, exit_on_error=False)
        self._drawn()

    async def _find(self, pattern: str) -> None:
        at = self.window.lines[self.top].offset if self.top < len(self.window.lines) else 0
        try:
            found = await self._client.search(
                self._process, pattern, limit=_MOST_HITS, ignore_case=pattern.islower(), stream=self._stream
            )
        except HoldfastError as failed:
            self._search, self._trouble = "", failed.message
        else:
            self._trouble, self._is_cut = "", found.truncated
            self.hits = found.matches
            if self.hits:
                after = bisect_left(self.hits, at, key=_place)
                await self._show_hit(min(after, len(self.hits) - 1))
        self._drawn()

    def action_hit(self, by: int) -> None:
        if self.hits:
            self._load(self._show_hit(((self.hit or 0) + by) % len(self.hits)))

    async def _show_hit(self, at: int) -> None:
        self.hit, found = at, self.hits[at]
        await self.go_to(_place(found))
        column = _column(found, self.window.lines[self.window.index_of(_place(found))]) if self.window.lines else 0
        is_in_view = column + found.length <= self.inner_width
        self._left = 0 if is_in_view else max(0, column - self.inner_width // 2)

    # Drawing.

    def draw(self, index: int, width: int) -> list[Segment]:
        line = self.window.lines[index]
        text = cached_line(line.data)
        if (match := self._match_in(line)) is not None:
            text = text.copy()
            column = _column(match, line)
            text.stylize(self._mark(match), column, column + max(1, match.length))
        return _segments(text[self._left :] if self._left else text, self.app.console, width)

    def _match_in(self, line: LogLine) -> Match | None:
        at = bisect_left(self.hits, line.offset, key=_place)
        return self.hits[at] if at < len(self.hits) and _place(self.hits[at]) < line.offset + len(line.data) else None

    def _mark(self, match: Match) -> Style:
        is_current = self.hit is not None and self.hits[self.hit] is match
        return paint.style(self.is_dark, "back", on="warn" if is_current else "accent", bold=is_current)

    def empty_line(self, y: int, width: int) -> list[Segment]:
        if self.window.lines or y != 1:
            return []
        return [Segment(f" {self._trouble or 'no output yet'}", paint.style(self.is_dark, "dim"))]


def _place(match: Match) -> int:
    """The byte where it begins, as far as that is known."""
    return match.offset if match.match_offset is None else match.match_offset


def _column(match: Match, line: LogLine) -> int:
    """Where it begins in what is shown of a line. What was found of a long line is only a part of it."""
    begin = max(0, _place(match) - line.offset)
    return len(line_text(line.data[:begin]).plain) if match.cut else match.column


def _segments(text: Text, console: Console, width: int) -> list[Segment]:
    """As wide as fits; a longer line ends with an ellipsis."""
    if text.cell_len > width:
        text = text.copy()
        text.truncate(width, overflow="ellipsis")
    return [one for one in text.render(console) if one.text]
