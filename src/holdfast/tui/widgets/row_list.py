"""A list of rows with a cursor. Each has a key: it changes in place, and the cursor stays with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from holdfast.tui import paint
from holdfast.tui.widgets.lines_view import LinesView

R = TypeVar("R")


class RowList(LinesView, Generic[R]):
    """`draw_row(row, width, is_dark)` draws one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", show=False),
        Binding("k,up", "move(-1)", show=False),
        Binding("g,home", "to_end(False)", show=False),
        Binding("G,end", "to_end(True)", show=False),
        Binding("pagedown,ctrl+f", "page(1)", show=False),
        Binding("pageup,ctrl+b", "page(-1)", show=False),
        Binding("enter", "open", show=False),
    ]

    class RowOpened(Message):
        """Enter, or a second click, on a row."""

        def __init__(self, rows: RowList[Any], key: str) -> None:
            super().__init__()
            self.rows = rows
            self.key = key

        @property
        def control(self) -> RowList[Any]:
            return self.rows

    class RowMoved(Message):
        """The cursor is on another row."""

        def __init__(self, rows: RowList[Any], key: str | None) -> None:
            super().__init__()
            self.rows = rows
            self.key = key

        @property
        def control(self) -> RowList[Any]:
            return self.rows

    def __init__(
        self,
        draw_row: Callable[[R, int, bool], list[Segment]],
        *,
        empty: str = "",
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._draw_row = draw_row
        self._rows: Sequence[tuple[str, R]] = ()
        self._index: dict[str, int] = {}
        self.empty = empty
        self.key: str | None = None
        #: Rows that came above the view since the cursor left the top.
        self.new_above = 0

    # Rows.

    def set_rows(self, rows: Sequence[tuple[str, R]]) -> None:
        """Replace them. The view stays with its rows, unless it is at the top."""
        if len(rows) == len(self._rows) and all(now[1] is was[1] for now, was in zip(rows, self._rows, strict=True)):
            return
        was_first = self._rows[self.top][0] if self.top and self.top < len(self._rows) else None
        known, before = self._index, self.cursor
        self._rows = rows
        self._index = {key: at for at, (key, _) in enumerate(rows)}
        if self.key is None or self.key not in self._index:
            at = min(before, len(rows) - 1)
            self._set_key(rows[at][0] if rows else None)
        if before == 0 and self.top == 0 and not self.has_moved:
            self._set_key(rows[0][0] if rows else None)
        if was_first is not None and was_first in self._index:
            self.new_above += sum(1 for key, _ in rows[: self._index[was_first]] if key not in known)
            self.top = self._index[was_first]
        self.top = max(0, min(self.top, self.last_top))
        self._reveal()
        self.refresh()

    has_moved = False

    @property
    def row(self) -> R | None:
        """The row with the cursor."""
        at = self._index.get(self.key) if self.key is not None else None
        return None if at is None else self._rows[at][1]

    @property
    def cursor(self) -> int:
        return self._index.get(self.key, 0) if self.key is not None else 0

    def keys(self) -> list[str]:
        return [key for key, _ in self._rows]

    # Lines.

    def count(self) -> int:
        return len(self._rows)

    def draw(self, index: int, width: int) -> list[Segment]:
        key, row = self._rows[index]
        segments = self._draw_row(row, width, self.is_dark)
        if key != self.key:
            return segments
        back = paint.style(self.is_dark, "text", on="cursor" if self.has_focus else "bar").background_style
        padded = [*segments, Segment(" " * max(0, width - sum(one.cell_length for one in segments)))]
        return [Segment(one.text, (one.style + back) if one.style else back) for one in padded]

    def empty_line(self, y: int, width: int) -> list[Segment]:
        if self._rows or y != 1:
            return []
        return [Segment(f" {self.empty}", paint.style(self.is_dark, "dim"))]

    # The cursor.

    def select(self, key: str) -> None:
        if key in self._index:
            self._set_key(key)
            self._reveal()
            self.refresh()

    def _set_key(self, key: str | None) -> None:
        if key != self.key:
            self.key = key
            self.post_message(self.RowMoved(self, key))

    def _reveal(self) -> None:
        at, height = self.cursor, max(1, self.size.height)
        if at < self.top:
            self.top = at
        elif at >= self.top + height and self.size.height:
            self.top = at - height + 1
        if self.top == 0:
            self.new_above = 0

    def action_move(self, by: int) -> None:
        if self._rows:
            at = max(0, min(len(self._rows) - 1, self.cursor + by))
            self.has_moved = at > 0
            self.select(self._rows[at][0])

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, self.size.height - 1))

    def action_to_end(self, is_last: bool) -> None:
        self.action_move(len(self._rows) if is_last else -len(self._rows))

    def action_open(self) -> None:
        if self.key is not None:
            self.post_message(self.RowOpened(self, self.key))

    def on_click(self, event: events.Click) -> None:
        at = self.top + event.y
        if 0 <= at < len(self._rows):
            key = self._rows[at][0]
            is_second = key == self.key and (self.has_moved or event.chain > 1)
            self.has_moved = True
            self.select(key)
            if is_second:
                self.post_message(self.RowOpened(self, key))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.action_move(self.WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.action_move(-self.WHEEL)
