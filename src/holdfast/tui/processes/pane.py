"""One process: its output, its screen, or its details, below a line that says what it is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input, Static

from holdfast.client.process import Process
from holdfast.errors import HoldfastError
from holdfast.tui import paint
from holdfast.tui.processes.log_view import LogView
from holdfast.tui.processes.terminal_view import TerminalView
from holdfast.tui.states import age_of, note_of, state_of
from holdfast.tui.widgets.lines_view import LinesView
from holdfast.tui.widgets.status_line import StatusLine, TextLine
from holdfast.tui.widgets.text_boxes import LineBox

if TYPE_CHECKING:
    from holdfast.tui.feed import LiveFeed

LOG_KEYS = "f follow · / find · g G ends · t terminal · d why · x end · ? keys · esc back"
TERMINAL_KEYS = "ctrl-] leaves the terminal · l output"
DETAIL_KEYS = "l output · t terminal · x end · r restart · y copy id · ? keys · esc back"


class TextLines(LinesView):
    """Lines of plain text, each with the name of a colour."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "lines(1)", show=False),
        Binding("k,up", "lines(-1)", show=False),
        Binding("pagedown,space", "lines(20)", show=False),
        Binding("pageup", "lines(-20)", show=False),
    ]

    def __init__(self, lines: list[tuple[str, str]]) -> None:
        super().__init__()
        self.lines = lines

    def count(self) -> int:
        return len(self.lines)

    def draw(self, index: int, width: int) -> list[Segment]:
        text, colour = self.lines[index]
        return [Segment(" " + paint.fit(text, width - 1), paint.style(self.is_dark, colour))]

    def action_lines(self, by: int) -> None:
        self.scroll_lines(by)


class ProcessPane(Vertical):
    """`mode` is log, terminal or details."""

    DEFAULT_CSS = """
    ProcessPane > #title { height: 1; background: $panel; padding: 0 1; }
    ProcessPane > #state { height: 1; color: $foreground 70%; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "show('log')", show=False),
        Binding("t", "show('terminal')", show=False),
        Binding("d", "show('details')", show=False),
        Binding("slash", "find", show=False),
        Binding("e", "stream", show=False),
    ]

    class PaneReshown(Message):
        """Another mode is shown."""

    def __init__(self, feed: LiveFeed, process: str, mode: str = "log") -> None:
        super().__init__()
        self.feed = feed
        self.process = process
        self.mode = mode
        self._stream = "out"
        self._known: Process | None = feed.processes.get(process)

    def compose(self) -> ComposeResult:
        yield Static(id="title")
        yield self._make()
        yield TextLine(id="state")

    def _make(self) -> LogView | TerminalView | TextLines:
        if self.mode == "terminal":
            is_typing = self._known is not None and self._known.status != "ended"
            return TerminalView(self.feed.client, self.process, is_typing=is_typing, id="body")
        if self.mode == "details":
            return TextLines(_details(self._known))
        return LogView(self.feed.client, self.process, stream=self._stream, id="body")

    def on_mount(self) -> None:
        self.update_title()

    @property
    def body(self) -> LogView | TerminalView | TextLines:
        return self.query_one("LogView, TerminalView, TextLines")  # type: ignore[return-value]

    @property
    def keys(self) -> str:
        if self.mode == "terminal":
            body = self.body
            return TERMINAL_KEYS if isinstance(body, TerminalView) and body.is_typing else DETAIL_KEYS
        return LOG_KEYS if self.mode == "log" else DETAIL_KEYS

    # What it shows.

    async def action_show(self, mode: str) -> None:
        process = self._known
        if mode == "terminal" and process is not None and not process.pty:
            self.notify(f"{process.name or process.id} has no terminal: s sends a line to it", severity="warning")
            return
        if mode == self.mode:
            body = self.body
            if isinstance(body, TerminalView) and process is not None and process.status != "ended":
                body.type_into(True)
            return
        self.mode = mode
        await self._rebuild()

    async def _rebuild(self) -> None:
        await self.body.remove()
        made = self._make()
        await self.mount(made, after="#title")
        made.focus()
        if isinstance(made, TextLines):
            self.run_worker(self._explain(made), exit_on_error=False)
        self._say_state()
        self.post_message(self.PaneReshown())

    async def action_stream(self) -> None:
        """Between stdout and stderr, where they are apart."""
        if self._known is not None and self._known.split and self.mode == "log":
            self._stream = "err" if self._stream == "out" else "out"
            await self._rebuild()

    async def _explain(self, body: TextLines) -> None:
        try:
            why = await self.feed.client.why(self.process)
        except HoldfastError as failed:
            found = [(failed.message, "bad")]
        else:
            found = [(str(why["summary"]), "text"), *((str(line), "text") for line in why["details"] or [])]
            found += [
                ("", "text"),
                *((str(line), "bad" if why["are_errors"] else "dim") for line in why["lines"] or []),
            ]
            found += [("", "text"), *((f"next: {line}", "accent") for line in why["next"] or [])]
        body.lines = [*found, ("", "text"), *_details(self._known)]
        body.refresh()

    def changed(self) -> None:
        """The feed has something new."""
        before, self._known = self._known, self.feed.processes.get(self.process, self._known)
        if before is not self._known:
            body = self.body
            if isinstance(body, (LogView, TerminalView)):
                body.wake()
        self.update_title()

    def update_title(self) -> None:
        process = self._known
        if process is None:
            self.query_one("#title", Static).update(Content(f"{self.process} is not known"))
            return
        dark, now = self.app.current_theme.dark, time.time()
        state = state_of(process)
        label = Content.styled(state.label, str(paint.style(dark, state.colour, bold=True).color.name))  # type: ignore[union-attr]
        facts = [note_of(process, now), age_of(process, now), f"pid {process.pid}", str(process.session)]
        rest = " · ".join(fact for fact in facts if fact)
        name = f"{process.name} · " if process.name else ""
        room = max(10, self.size.width - len(rest) - len(state.label) - len(name) - 8)
        command = paint.fit(str(process.command), room).rstrip()
        self.query_one("#title", Static).update(
            Content.assemble(label, "  ", (paint.clean(name), "bold"), command, "  ", (paint.clean(rest), "dim"))
        )

    def on_resize(self) -> None:
        self.update_title()

    def on_log_view_log_changed(self, event: LogView.LogChanged) -> None:
        event.stop()
        self._say_state()

    def on_terminal_view_screen_changed(self, event: TerminalView.ScreenChanged) -> None:
        event.stop()
        self._say_state()
        self.post_message(self.PaneReshown())

    def on_terminal_view_terminal_left(self, event: TerminalView.TerminalLeft) -> None:
        event.stop()
        self._say_state()
        self.post_message(self.PaneReshown())

    def _say_state(self) -> None:
        body = self.body
        text = "" if isinstance(body, TextLines) else body.status
        stream = " · stderr (e: stdout)" if self._stream == "err" else ""
        self.query_one("#state", TextLine).show(paint.clean(text + stream))

    # Finding.

    async def action_find(self) -> None:
        if self.mode == "log" and not self.query(Input):
            made = LineBox(placeholder="find: a regular expression", id="find")
            made.behind = self.body
            await self.mount(made, after="#body")
            self.screen.set_focus(made)

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        body = self.body
        if isinstance(body, LogView):
            body.search(event.value)
        await self.close_find()

    async def close_find(self) -> bool:
        """Whether there was something to close."""
        is_open = bool(self.query(Input))
        if is_open:
            await self.query(Input).remove()
            self.body.focus()
        return is_open


def _details(process: Process | None) -> list[tuple[str, str]]:
    if process is None:
        return []
    names = ("id", "name", "command", "cwd", "session", "task", "backend", "pid", "status", "reason", "exit_code",
             "signal", "output_bytes", "restarts", "ports", "rss_bytes", "cpu_seconds", "lifetime", "notify", "watch",
             "queue", "labels", "trouble")  # fmt: skip
    fields = process.to_json()
    return [(f"{name:<14}{fields[name]}", "dim") for name in names if fields.get(name) not in (None, [], {})]


class ProcessScreen(Screen[None]):
    """A process on the whole screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "back", show=False)]

    def __init__(self, feed: LiveFeed, process: str, mode: str = "log") -> None:
        super().__init__()
        self.pane = ProcessPane(feed, process, mode)

    def compose(self) -> ComposeResult:
        yield self.pane
        yield StatusLine(LOG_KEYS)

    def on_mount(self) -> None:
        self.pane.body.focus()
        if self.pane.mode == "details":
            self.run_worker(self.pane._rebuild(), exit_on_error=False)
        self.query_one(StatusLine).set_keys(self.pane.keys)

    def on_process_pane_pane_reshown(self) -> None:
        self.query_one(StatusLine).set_keys(self.pane.keys)

    async def action_back(self) -> None:
        if not await self.pane.close_find():
            self.dismiss()
