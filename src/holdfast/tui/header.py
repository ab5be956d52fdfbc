"""The top of the screen: a tab for all processes and for each session, and below it what needs the user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from holdfast.tui import paint
from holdfast.tui.user_needs import MOST_LINES, UserNeed, need_parts


class Tab(NamedTuple):
    """`key` is empty for all processes. `marks` are texts with the names of their colours."""

    key: str
    title: str
    marks: tuple[tuple[str, str], ...] = ()

    @property
    def width(self) -> int:
        return len(self.title) + sum(len(text) + 1 for text, _ in self.marks) + 3


class TabBar(Widget):
    """One line. Where not all tabs fit, those around the active one are shown, and how many are not."""

    DEFAULT_CSS = """
    TabBar { height: 1; background: $panel; }
    """

    class TabChosen(Message):
        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self) -> None:
        super().__init__(id="tabs")
        self.tabs: Sequence[Tab] = (Tab("", "all"),)
        self.active: Sequence[str] = ("",)
        #: Right of the tabs.
        self.note = ("connecting…", "dim")
        self._places: list[tuple[int, int, str]] = []

    def show(self, tabs: Sequence[Tab], active: Sequence[str], note: tuple[str, str]) -> None:
        if (tabs, active, note) != (self.tabs, self.active, self.note):
            self.tabs, self.active, self.note = tabs, active, note
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width, dark = self.size.width, self.app.current_theme.dark
        right = f" {self.note[0]} "
        shown, before, after = self._fitting(width - len(right) - 8)
        segments: list[Segment] = []
        self._places = []
        at = 0

        def add(text: str, colour: str, bold: bool = False, on: str = "") -> None:
            nonlocal at
            segments.append(Segment(text, paint.style(dark, colour, bold=bold, on=on)))
            at += segments[-1].cell_length

        if before:
            add(f"‹{before} ", "dim")
        for number, tab in enumerate(shown):
            begin, is_active = at, tab.key in self.active
            on = "cursor" if is_active else ""
            add(f" {paint.clean(tab.title)}", "text", bold=is_active, on=on)
            for text, colour in tab.marks:
                add(f" {text}", colour, on=on)
            add(" ", "text", on=on)
            self._places.append((begin, at, tab.key))
            if number < len(shown) - 1:
                add("│", "dim")
        if after:
            add(f" {after}›", "dim")
        strip = Strip(segments).adjust_cell_length(max(0, width - len(right)))
        end = Strip([Segment(right, paint.style(dark, self.note[1]))])
        return Strip.join([strip, end]).adjust_cell_length(width).apply_style(self.rich_style)

    def _fitting(self, width: int) -> tuple[Sequence[Tab], int, int]:
        """The tabs that fit, and how many are left out before and after them."""
        total = len(self.tabs)
        at = next((n for n, tab in enumerate(self.tabs) if tab.key in self.active), 0)
        first = last = at
        used = self.tabs[at].width if total else 0
        while True:
            if last + 1 < total and used + self.tabs[last + 1].width <= width:
                last += 1
                used += self.tabs[last].width
            elif first > 0 and used + self.tabs[first - 1].width <= width:
                first -= 1
                used += self.tabs[first].width
            else:
                return self.tabs[first : last + 1], first, total - last - 1

    def on_click(self, event: events.Click) -> None:
        for begin, end, key in self._places:
            if begin <= event.x < end:
                self.post_message(self.TabChosen(key))


class NeedsYou(Widget):
    """Up to three lines; none where all is well."""

    DEFAULT_CSS = """
    NeedsYou { height: auto; background: $panel; }
    """

    class NeedChosen(Message):
        def __init__(self, need: UserNeed) -> None:
            super().__init__()
            self.need = need

    def __init__(self) -> None:
        super().__init__(id="needs")
        self.needs: Sequence[UserNeed] = ()
        #: Whether the user writes to an agent, and plain keys are letters.
        self.is_writing = False

    def show(self, found: Sequence[UserNeed], is_writing: bool = False) -> None:
        if (found, is_writing) != (self.needs, self.is_writing):
            self.is_writing = is_writing
            is_taller = min(len(found), MOST_LINES) != min(len(self.needs), MOST_LINES)
            self.needs = found
            self.refresh(layout=is_taller)

    @property
    def in_view(self) -> Sequence[UserNeed]:
        return self.needs[:MOST_LINES]

    def get_content_height(self, *_: object) -> int:
        return min(len(self.needs), MOST_LINES)

    def render_line(self, y: int) -> Strip:
        width, dark = self.size.width, self.app.current_theme.dark
        if y >= len(self.needs):
            return Strip.blank(width, self.rich_style)
        segments = paint.drawn(need_parts(self.needs, y, width, self.is_writing), dark)
        return Strip(segments).adjust_cell_length(width).apply_style(self.rich_style)

    def on_click(self, event: events.Click) -> None:
        if 0 <= event.y < len(self.in_view):
            self.post_message(self.NeedChosen(self.in_view[event.y]))
