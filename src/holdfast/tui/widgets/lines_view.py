"""A widget of many lines that draws only those in view: its cost does not depend on how many there are."""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from holdfast.tui import paint


class LinesView(Widget, can_focus=True):
    """Subclasses say how many lines there are, and draw one. `top` is the first line in view.

    It has no border and no padding: its lines go to the screen as they are, and a line that looks as before is not
    rendered again, wherever it has moved to.
    """

    DEFAULT_CSS = """
    LinesView { height: 1fr; width: 1fr; }
    """
    WHEEL = 3

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.top = 0
        self._drawn_size = Size(0, 0)

    # For subclasses.

    @abstractmethod
    def count(self) -> int:
        """The number of lines at the present width."""

    @abstractmethod
    def draw(self, index: int, width: int) -> list[Segment]:
        """The line with this number; longer ones are cut."""

    def empty_line(self, y: int, width: int) -> list[Segment]:
        """A line below the last one."""
        return []

    # Drawing.

    @property
    def is_dark(self) -> bool:
        return self.app.current_theme.dark

    @property
    def inner_width(self) -> int:
        return max(1, self.size.width - 1)

    def render_lines(self, crop: Region) -> list[Strip]:
        """What is the same for all lines is found once: styles take longer than text."""
        self.settle()
        width, total, base = self.inner_width, self.count(), self.rich_style
        first, last = self.bar_range(total)
        on, off = (Segment(text, paint.style(self.is_dark, name)) for text, name in (("▐", "thumb"), (" ", "bar")))
        _, background = self.background_colors
        filters = self.get_line_filters()
        strips = []
        for y in crop.line_range:
            index = self.top + y
            segments = self.draw(index, width) if index < total else self.empty_line(y, width)
            strip = _finished(tuple(segments), width, on if first <= y < last else off, base)
            for one in filters:
                strip = strip.apply_filter(one, background)
            strips.append(strip)
        if crop.column_span != (0, width + 1):
            strips = [strip.crop(*crop.column_span) for strip in strips]
        return strips

    def bar_range(self, total: int) -> tuple[int, int]:
        """The rows of the scroll bar's thumb; nothing where all is in view."""
        height = self.size.height
        if total <= height or not height:
            return 0, 0
        size = max(1, height * height // total)
        at = round((height - size) * self.top / max(1, total - height))
        return at, at + size

    # Scrolling.

    @property
    def last_top(self) -> int:
        return max(0, self.count() - self.size.height)

    @property
    def is_at_end(self) -> bool:
        return self.top >= self.last_top

    def scroll_lines(self, by: int) -> None:
        self.show_from(self.top + by)

    def show_from(self, top: int) -> None:
        top = max(0, min(top, self.last_top))
        if top != self.top:
            self.top = top
            self.scrolled()
            self.refresh()

    def scrolled(self) -> None:
        """The view moved."""

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.scroll_lines(self.WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.scroll_lines(-self.WHEEL)

    def settle(self) -> None:
        """Before lines are drawn: the size of the view or the number of lines may have changed."""
        self.top = max(0, min(self.top, self.last_top))

    def on_resize(self) -> None:
        if self.size != self._drawn_size:  # one that comes into view again is as it was
            self._drawn_size = self.size
            self.refresh()


@lru_cache(1024)
def _finished(segments: tuple[Segment, ...], width: int, bar: Segment, base: Style) -> Strip:
    """A line as wide as the view, with its part of the scroll bar. A strip keeps what is rendered from it."""
    strip = Strip(segments).adjust_cell_length(width)
    return Strip([*strip, bar], width + 1).apply_style(base)
