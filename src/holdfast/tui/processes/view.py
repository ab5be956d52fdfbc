"""The processes of all sessions, with a filter, and the last line of the selected one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input

from holdfast.client.process import Process
from holdfast.errors import HoldfastError
from holdfast.tui import paint
from holdfast.tui.processes.rows import draw_process, ordered, selected
from holdfast.tui.widgets.row_list import RowList
from holdfast.tui.widgets.status_line import TextLine
from holdfast.tui.widgets.text_boxes import LineBox

if TYPE_CHECKING:
    from holdfast.tui.feed import LiveFeed


class ProcessesView(Vertical):
    """`filter_text` selects rows."""

    DEFAULT_CSS = """
    ProcessesView > #last { height: 1; color: $foreground 70%; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("slash", "filter", show=False)]

    def __init__(self, feed: LiveFeed) -> None:
        super().__init__(id="all")
        self._feed = feed
        self.filter_text = ""

    def compose(self) -> ComposeResult:
        yield RowList[Process](draw_process, empty="loading…", id="processes")
        yield TextLine(id="last")

    @property
    def rows(self) -> RowList[Process]:
        return self.query_one("#processes", RowList)

    def changed(self) -> None:
        """The feed has something new."""
        rows = self.rows
        found = ordered(selected(self._feed.processes.values(), self.filter_text), self._feed.over)
        if self._feed.trouble:
            rows.empty = self._feed.trouble
        elif self._feed.is_loaded:
            rows.empty = "nothing matches the filter; esc clears it" if self.filter_text else _NOTHING
        rows.set_rows([(process.id, process) for process in found])
        self._say()

    def _say(self, last: str | None = None) -> None:
        if last is not None:
            self._last = last
        rows = self.rows
        parts = [f"▲ {rows.new_above} new"] if rows.new_above else []
        if self.filter_text:
            parts.append(f"/{self.filter_text} ({rows.count()})")
        if self._last:
            parts.append(self._last)
        self.query_one("#last", TextLine).show(paint.clean(" · ".join(parts)))

    _last = ""

    # The last line of the selected process.

    def on_row_list_row_moved(self, event: RowList.RowMoved) -> None:
        event.stop()
        self.show_last(event.key)

    def show_last(self, process: str | None) -> None:
        """If it is the selected one."""
        if process is not None and process == self.rows.key:
            self.run_worker(self._read_last(process), group="last", exclusive=True, exit_on_error=False)

    async def _read_last(self, process: str) -> None:
        try:
            page = await self._feed.client.logs(process, lines=1, bytes=4096)
        except HoldfastError:
            return
        if process == self.rows.key:
            self._say("› " + page.text.strip() if page.text.strip() else "")

    # The filter.

    async def action_filter(self) -> None:
        if not self.query(Input):
            made = LineBox(self.filter_text, placeholder="filter: words of command, state, session")
            made.behind = self.rows
            await self.mount(made, before="#last")
            self.screen.set_focus(made)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.filter_text = event.value
        self.changed()

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        await self.query(Input).remove()
        self.rows.focus()

    async def leave(self) -> bool:
        """Close the filter and clear it; whether there was one."""
        had_some = bool(self.query(Input)) or bool(self.filter_text)
        self.filter_text = ""
        await self.query(Input).remove()
        self.changed()
        self.rows.focus()
        return had_some


_NOTHING = "no process yet: holdfast run -d COMMAND starts one"
