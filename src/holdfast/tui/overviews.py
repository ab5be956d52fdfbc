"""Lists on a screen of their own: approvals, the inbox of a session, backends, events."""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar

from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from holdfast.client.results.approval import Approval
from holdfast.client.results.notification import Notification
from holdfast.errors import HoldfastError
from holdfast.model.units import age_text
from holdfast.tui import paint
from holdfast.tui.widgets.row_list import RowList
from holdfast.tui.widgets.status_line import StatusLine

if TYPE_CHECKING:
    from holdfast.tui.feed import LiveFeed

_MOST_EVENTS = 2000
_FIRST_EVENTS = 300


class OverviewScreen(Screen[str | None]):
    """A title, rows, and the keys. It is left with the key of the row that was chosen."""

    CSS = """
    OverviewScreen > #title { height: 1; background: $panel; padding: 0 1; text-style: bold; }
    OverviewScreen > #detail { height: auto; max-height: 10; padding: 0 1; color: $foreground 80%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave", show=False)]
    TITLE_TEXT = ""
    KEYS = "enter open · esc back"
    EMPTY = "nothing"

    def __init__(self, feed: LiveFeed) -> None:
        super().__init__()
        self.feed = feed

    def compose(self) -> ComposeResult:
        yield Static(Content(paint.clean(self.TITLE_TEXT)), id="title")
        yield RowList[Any](self.draw_row, empty="loading…", id="rows")
        yield Static(id="detail")
        yield StatusLine(self.KEYS)

    def on_mount(self) -> None:
        self.rows.focus()
        self.run_worker(self._load(), exit_on_error=False)

    @property
    def rows(self) -> RowList[Any]:
        return self.query_one("#rows", RowList)

    async def _load(self) -> None:
        try:
            await self.load()
        except HoldfastError as failed:
            self.rows.empty = failed.message
            self.rows.refresh()
        else:
            self.rows.empty = self.EMPTY
            self.rows.refresh()

    async def load(self) -> None:
        """Set the rows."""

    @abstractmethod
    def draw_row(self, row: Any, width: int, dark: bool) -> list[Segment]:
        """One line."""

    def detail_of(self, row: Any) -> str:
        """Shown below the rows for the selected one."""
        return ""

    def on_row_list_row_moved(self) -> None:
        row = self.rows.row
        text = self.detail_of(row) if row is not None else ""
        shown = "\n".join(paint.clean(line) for line in text.split("\n"))
        self.query_one("#detail", Static).update(Content(shown))

    def on_row_list_row_opened(self, event: RowList.RowOpened) -> None:
        event.stop()
        self.dismiss(event.key)

    def action_leave(self) -> None:
        self.dismiss(None)

    def changed(self) -> None:
        """The feed has something new."""


class ApprovalsScreen(OverviewScreen):
    TITLE_TEXT = "Requests for approval"
    EMPTY = "nothing to approve"
    KEYS = "enter answer · esc back"

    async def load(self) -> None:
        self.changed()

    def changed(self) -> None:
        found = sorted(self.feed.approvals.values(), key=lambda one: one.at)
        self.rows.set_rows([(one.id, one) for one in found])

    def draw_row(self, row: Approval, width: int, dark: bool) -> list[Segment]:
        age = age_text(time.time() - row.at)
        return paint.joined(
            (" ! ", paint.style(dark, "warn", bold=True)),
            (paint.fit(row.command, width - 30), paint.style(dark, "text")),
            ("  " + paint.fit(f"{row.session}", 14), paint.style(dark, "dim")),
            (" " + paint.fit(age, 8, right=True), paint.style(dark, "dim")),
        )

    def detail_of(self, row: Approval) -> str:
        return f"{row.why}\nin {row.cwd}"


class InboxScreen(OverviewScreen):
    """The pending notifications of one session. Looking at them acknowledges none."""

    EMPTY = "no pending notification"
    KEYS = "enter open the process · c acknowledge · esc back"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("c", "acknowledge", show=False)]

    def __init__(self, feed: LiveFeed, session: str) -> None:
        super().__init__(feed)
        self.session = session
        self.TITLE_TEXT = f"Inbox of {session}"
        self._pending = feed.pending[session]

    async def load(self) -> None:
        found = await self.feed.client.inbox(session=self.session)
        self.rows.set_rows([(one.id, one) for one in found])

    def changed(self) -> None:
        pending = self.feed.pending[self.session]
        if pending != self._pending:
            self._pending = pending
            self.run_worker(self._load(), group="load", exclusive=True, exit_on_error=False)

    def draw_row(self, row: Notification, width: int, dark: bool) -> list[Segment]:
        return paint.joined(
            (" " + paint.fit(age_text(time.time() - row.at), 8), paint.style(dark, "dim")),
            (paint.fit(row.summary, width - 9), paint.style(dark, "text")),
        )

    def detail_of(self, row: Notification) -> str:
        return row.text

    def on_row_list_row_opened(self, event: RowList.RowOpened) -> None:
        event.stop()
        row = self.rows.row
        if row is not None and row.process:
            self.dismiss(row.process)

    async def action_acknowledge(self) -> None:
        row = self.rows.row
        if row is not None:
            try:
                await self.feed.client.ack(row.id)
                await self.load()
            except HoldfastError as failed:
                self.query_one(StatusLine).say(failed.message, "error")


class BackendsScreen(OverviewScreen):
    TITLE_TEXT = "Backends: where commands can run"

    async def load(self) -> None:
        self.rows.set_rows([(str(one.get("name")), one) for one in await self.feed.client.backends()])

    def draw_row(self, row: dict[str, Any], width: int, dark: bool) -> list[Segment]:
        is_ready = row.get("state") == "ready"
        places = len(row.get("places") or [])
        text = f"{row.get('detail') or ''}{f' · {places} places' if places else ''}"
        return paint.joined(
            (" ✓ " if is_ready else " ✗ ", paint.style(dark, "good" if is_ready else "dim")),
            (paint.fit(str(row.get("name")), 14), paint.style(dark, "text")),
            (paint.fit(str(row.get("state")), 10), paint.style(dark, "dim")),
            (paint.fit(text, width - 27), paint.style(dark, "dim")),
        )

    def detail_of(self, row: dict[str, Any]) -> str:
        places = [f"{one.get('key')}  {one.get('state')}" for one in row.get("places") or []]
        return "\n".join([str(row.get("detail") or ""), *places[:8]])

    def on_row_list_row_opened(self, event: RowList.RowOpened) -> None:
        event.stop()


class EventsScreen(OverviewScreen):
    """The newest first; those that come are added while it is open."""

    TITLE_TEXT = "Events"
    EMPTY = "no event is kept"

    def __init__(self, feed: LiveFeed) -> None:
        super().__init__(feed)
        self._events: deque[dict[str, Any]] = deque(maxlen=_MOST_EVENTS)

    async def load(self) -> None:
        newest = int((await self.feed.client.status())["events"])
        first: list[dict[str, Any]] = []
        async with self.feed.client.events(since=max(0, newest - _FIRST_EVENTS)) as events:
            async for event in events:
                first.append(event)
        seen = {event.get("seq") for event in first}
        later = [event for event in reversed(self._events) if event.get("seq") not in seen]
        self._events = deque([*reversed(first)], maxlen=_MOST_EVENTS)
        for event in later:
            self._events.appendleft(event)
        self._show()

    def take(self, event: dict[str, Any]) -> None:
        if "seq" in event:
            self._events.appendleft(event)
            self._show()

    def _show(self) -> None:
        if self.is_mounted:
            self.rows.set_rows([(str(event.get("seq")), event) for event in self._events])

    def draw_row(self, row: dict[str, Any], width: int, dark: bool) -> list[Segment]:
        about = row.get("name") or row.get("id") or row.get("process") or ""
        when = time.strftime("%H:%M:%S", time.localtime(float(row.get("ts") or 0.0)))
        return paint.joined(
            (f" {when}  ", paint.style(dark, "dim")),
            (paint.fit(str(row.get("type")), 26), paint.style(dark, "text")),
            (paint.fit(str(row.get("session") or ""), 14), paint.style(dark, "dim")),
            (paint.fit(str(about), width - 51), paint.style(dark, "dim")),
        )

    def detail_of(self, row: dict[str, Any]) -> str:
        return json.dumps(row, ensure_ascii=False)[:2000]

    def on_row_list_row_opened(self, event: RowList.RowOpened) -> None:
        event.stop()
        row = self.rows.row
        process = row.get("id") if row is not None else None
        if isinstance(process, str) and process in self.feed.processes:
            self.dismiss(process)
