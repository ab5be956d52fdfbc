"""The screen of a process, as holdfast draws it, with what the user types sent to it. There is no second emulator."""

from __future__ import annotations

import asyncio

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from holdfast.client.aio import AsyncClient
from holdfast.client.results.screen import Screen as TerminalScreen
from holdfast.errors import HoldfastError, NotNow, StdinFull
from holdfast.tui import paint
from holdfast.tui.processes.ansi_lines import coloured
from holdfast.tui.processes.terminal_keys import bytes_of

LEAVE = "ctrl+right_square_bracket"
_FRAME = 0.03
_WAIT = 20.0
_PAUSE = 0.5
_FULL_PAUSE = 0.05


class TerminalView(Widget, can_focus=True):
    """While it is attached, every key goes to the process, apart from ctrl-]; its terminal has the size of the view."""

    DEFAULT_CSS = """
    TerminalView { height: 1fr; width: 1fr; }
    """

    class TerminalLeft(Message):
        """ctrl-] was pressed, or the process has ended."""

    class ScreenChanged(Message):
        """What `status` says is different."""

    def __init__(self, client: AsyncClient, process: str, *, is_typing: bool, id: str | None = None) -> None:
        super().__init__(id=id)
        self._client = client
        self._process = process
        self.is_typing = is_typing
        self.shown: TerminalScreen | None = None
        self.trouble = ""
        self._typed = bytearray()
        self._has_typed = asyncio.Event()
        self._again = asyncio.Event()
        self._asked_size: tuple[int, int] | None = None

    def on_mount(self) -> None:
        self.run_worker(self._draw_on(), exit_on_error=False)
        self.run_worker(self._send_on(), exit_on_error=False)

    @property
    def status(self) -> str:
        if self.trouble:
            return self.trouble
        if self.shown is None:
            return "loading…"
        size = f"{self.shown.cols}×{self.shown.rows}"
        return f"you type into it · ctrl-] leaves · {size}" if self.is_typing else f"{size} · t types into it"

    # The screen.

    async def _draw_on(self) -> None:
        """Draw it, wait for output, draw it again."""
        while True:
            self._again.clear()
            try:
                shown = await self._client.screen(self._process, ansi=True)
                self.shown, self.trouble = shown, ""
                self._drawn()
                await asyncio.sleep(_FRAME)
                page = await self._client.logs(self._process, offset=shown.at, bytes=1, raw=True, wait=_WAIT)
                if page.closed and not page.data:
                    await self._again.wait()
            except HoldfastError as failed:
                self.trouble = failed.message
                self._drawn()
                await asyncio.sleep(_PAUSE)

    def _drawn(self) -> None:
        self.post_message(self.ScreenChanged())
        self.refresh()

    def wake(self) -> None:
        """The process changed its state."""
        self._again.set()

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        if self.shown is None or y >= len(self.shown.lines):
            return Strip.blank(width, base)
        text = coloured(self.shown.lines[y])
        if y == self.shown.row and self.shown.cursor_visible and self.is_typing:
            text.pad_right(max(0, self.shown.col + 1 - text.cell_len))
            text.stylize(Style(reverse=True), self.shown.col, self.shown.col + 1)
        segments = [one for one in text.render(self.app.console) if one.text]
        if not segments and y == 0 and not any(self.shown.lines):
            segments = [Segment("(the screen is empty)", paint.style(self.app.current_theme.dark, "dim"))]
        return Strip(segments).adjust_cell_length(width).apply_style(base)

    # Size.

    def on_resize(self, event: events.Resize) -> None:
        self._fit()

    def type_into(self, is_typing: bool) -> None:
        """Begin or end to type into it."""
        self.is_typing = is_typing
        self._fit()
        self._drawn()

    def _fit(self) -> None:
        size = (self.size.width, self.size.height)
        if self.is_typing and all(size) and size != self._asked_size:
            self._asked_size = size
            self.run_worker(self._resize(*size), group="resize", exclusive=True, exit_on_error=False)

    async def _resize(self, cols: int, rows: int) -> None:
        try:
            await self._client.resize(self._process, cols, rows)
        except HoldfastError as failed:
            self.trouble = failed.message
        self._again.set()

    # Keys.

    async def on_key(self, event: events.Key) -> None:
        if not self.is_typing:
            return
        event.stop()
        event.prevent_default()
        if event.key == LEAVE:
            self.type_into(False)
            self.post_message(self.TerminalLeft())
            return
        is_full = self.shown is not None and self.shown.alternate
        self._type(bytes_of(event.key, event.character, is_full))

    def on_paste(self, event: events.Paste) -> None:
        if self.is_typing:
            event.stop()
            self._type(event.text.replace("\n", "\r").encode(errors="replace"))

    def _type(self, data: bytes) -> None:
        if data:
            self._typed += data
            self._has_typed.set()

    async def _send_on(self) -> None:
        """Send what is typed, in its order."""
        while True:
            await self._has_typed.wait()
            self._has_typed.clear()
            while self._typed:
                data = bytes(self._typed)
                self._typed.clear()
                await self._send(data)

    async def _send(self, data: bytes) -> None:
        while True:
            try:
                await self._client.send(self._process, data, enter=False)
                return
            except StdinFull:
                await asyncio.sleep(_FULL_PAUSE)
            except NotNow:
                self.type_into(False)
                self.post_message(self.TerminalLeft())
                return
            except HoldfastError as failed:
                self.trouble = failed.message
                self._drawn()
                return
