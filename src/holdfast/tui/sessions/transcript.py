"""The conversation of a session, drawn line by line: Markdown, folded calls, notices."""

from __future__ import annotations

import time
from bisect import bisect_right
from functools import cache, lru_cache
from itertools import accumulate
from typing import ClassVar
from weakref import WeakKeyDictionary

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from rich.theme import Theme
from textual import events
from textual.binding import Binding, BindingType

from holdfast.tui import paint
from holdfast.tui.sessions.transcript_blocks import ConversationBlocks, TranscriptBlock
from holdfast.tui.widgets.lines_view import LinesView

#: Heights of the view that are drawn at first; more when the user scrolls up to the first line.
_PAGES = 3
_STEP = 60
_SHOWN_RESULT = 60
_LEAST_WIDTH = 12
_INDENT = 2
#: Of a paragraph that is being written: more is not laid out at once.
_LONGEST_PIECE = 1000
Drawn = list[list[Segment]]


class Transcript(LinesView):
    """It stays at the end until the user scrolls up."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "lines(1)", show=False),
        Binding("k,up", "lines(-1)", show=False),
        Binding("pagedown,space", "pages(1)", show=False),
        Binding("pageup,b", "pages(-1)", show=False),
        Binding("g,home", "to_first", show=False),
        Binding("G,end", "to_last", show=False),
        Binding("o,enter", "fold_all", show=False),
    ]

    def __init__(self, conversation: ConversationBlocks, *, empty: str = "") -> None:
        super().__init__()
        self.conversation = conversation
        self.empty = empty
        self.is_following = True
        self._drawn: WeakKeyDictionary[TranscriptBlock, tuple[object, Drawn]] = WeakKeyDictionary()
        #: What is laid out, from the first block in view on: blocks may come and go until this is done again.
        self._blocks: list[TranscriptBlock] = []
        self._shown: list[Drawn] = []
        self._ends: list[int] = []
        self._first = 0
        self._is_stale = True
        #: How long it took to lay the blocks out the last time.
        self.layout_seconds = 0.0

    # Lines.

    def changed(self) -> None:
        """Blocks came or changed."""
        self._is_stale = True
        self.refresh()

    def settle(self) -> None:
        self._measure()
        if self.is_following:
            self.top = self.last_top
        else:
            super().settle()

    def _measure(self) -> None:
        blocks = self.conversation.blocks
        is_known = not self._is_stale and self._width == self.inner_width
        if is_known or self.size.width < _LEAST_WIDTH:  # out of view it has no width
            return
        begun = time.monotonic()
        self._is_stale, self._width = False, self.inner_width
        if self.is_following:
            self._first = self._first_needed(blocks)
        self._blocks = blocks[self._first :]
        dark = self.is_dark
        self._shown = [self._lines(blocks, at, dark) for at in range(self._first, len(blocks))]
        self._ends = list(accumulate(map(len, self._shown)))
        self.layout_seconds = time.monotonic() - begun

    def _first_needed(self, blocks: list[TranscriptBlock]) -> int:
        """The first block to draw: enough to fill the view and a part above it."""
        left, dark = _PAGES * max(10, self.size.height), self.is_dark
        for at in range(len(blocks) - 1, -1, -1):
            left -= len(self._lines(blocks, at, dark))
            if left <= 0:
                return at
        return 0

    _width = 0

    def _lines(self, blocks: list[TranscriptBlock], at: int, dark: bool) -> Drawn:
        """The lines of a block, drawn once for each state of it. An empty one is between two; calls stay together."""
        block = blocks[at]
        is_apart = at > 0 and not block.kind == blocks[at - 1].kind == "tool"
        key = (is_apart, self._width, dark, block.is_folded, block.status, block.head, block.text)
        known = self._drawn.get(block)
        if known is None or known[0] != key:
            drawn = draw_block(block, self._width, dark, self.app.console)
            known = key, [[], *drawn] if is_apart else drawn
            self._drawn[block] = known
        return known[1]

    def count(self) -> int:
        self._measure()
        return self._ends[-1] if self._ends else 0

    def draw(self, index: int, width: int) -> list[Segment]:
        at = bisect_right(self._ends, index)
        before = self._ends[at - 1] if at else 0
        return self._shown[at][index - before]

    def empty_line(self, y: int, width: int) -> list[Segment]:
        if self._ends or y != 1:
            return []
        return [Segment(f" {paint.fit(self.empty, width - 2)}", paint.style(self.is_dark, "dim"))]

    # Moving.

    def scroll_lines(self, by: int) -> None:
        if by < 0 and self.top == 0 and self._first:
            before = self.count()
            self._first = max(0, self._first - _STEP)
            self._is_stale = True
            self.top = self.count() - before
        super().scroll_lines(by)
        self.is_following = self.is_at_end

    def action_lines(self, by: int) -> None:
        self.scroll_lines(by)

    def action_pages(self, by: int) -> None:
        self.scroll_lines(by * max(1, self.size.height - 1))

    def action_to_first(self) -> None:
        self.scroll_lines(-self.count())

    def action_to_last(self) -> None:
        self.is_following = True
        self.refresh()

    # Folding.

    def action_fold_all(self) -> None:
        """Unfold all calls and notices, or fold all."""
        blocks = [block for block in self.conversation.blocks if block.kind in ("tool", "notice")]
        is_folded = any(block.is_folded for block in blocks)
        for block in blocks:
            block.is_folded = not is_folded
        self.changed()

    def on_click(self, event: events.Click) -> None:
        index = self.top + event.y
        if index < self.count():
            block = self._blocks[bisect_right(self._ends, index)]
            if block.kind in ("tool", "notice"):
                block.is_folded = not block.is_folded
                self.is_following = False
                self.changed()


def draw_block(block: TranscriptBlock, width: int, dark: bool, console: Console) -> Drawn:
    """The lines of a block."""
    if block.kind == "tool":
        return _tool(block, width, dark, console)
    if block.kind == "plan":
        return _plan(block, width, dark, console)
    if block.kind == "notice":
        colour, icon = ("bad", "✗") if block.status == "failed" else ("accent", "●")
        lines = _wrapped(block.head, width - 2 * _INDENT, paint.style(dark, colour), console)
        shown = _led(lines, Segment(f" {icon} ", paint.style(dark, colour, bold=True)))
        return shown if block.is_folded else [*shown, *_result(block.text, width, dark, console)]
    if block.kind == "agent":
        lines = (_draft if block.is_draft else _markdown)(block.text, width - 4, dark, console)
        return _led(lines, Segment("   "))
    colour = {"user": "accent", "error": "bad"}.get(block.kind, "dim")
    lead = {"user": " > ", "error": " ✗ "}.get(block.kind, " · ")
    status = f"  {block.status}" if block.status else ""
    plain = paint.style(dark, "text" if block.kind == "user" else colour, bold=block.kind == "user")
    lines = _wrapped(block.text + status, width - 4, plain, console)
    return _led(lines, Segment(lead, paint.style(dark, colour, bold=True)))


def _led(lines: Drawn, lead: Segment, further: Segment | None = None) -> Drawn:
    """Each line behind `lead`; all but the first behind `further`, which is blank else."""
    blank = further or Segment(" " * lead.cell_length)
    return [[lead if not at else blank, *line] for at, line in enumerate(lines)]


def _tool(block: TranscriptBlock, width: int, dark: bool, console: Console) -> Drawn:
    mark = "▸" if block.is_folded else "▾"
    is_bad = block.status == "failed"
    status = "" if block.status in ("success", "ok", "done", "running") else block.status
    left = width - 3 - (len(status) + 2 if status else 0)
    if not block.is_folded:
        look = paint.style(dark, "bad" if is_bad else "dim")
        heads = _led(_wrapped(block.head, width - 4, look, console), Segment(f" {mark} ", look))
        facts = [[Segment(f"   {status}", look)]] if status else []
        return [*heads, *facts, *_result(block.text, width, dark, console)]
    head = paint.joined(
        (f" {mark} ", paint.style(dark, "bad" if is_bad else "dim")),
        (paint.fit(block.head, left), paint.style(dark, "dim")),
        (f"  {paint.clean(status)}" if status else "", paint.style(dark, "bad" if is_bad else "dim")),
    )
    return [head]


def _plan(block: TranscriptBlock, width: int, dark: bool, console: Console) -> Drawn:
    """A line for each step: what is done, what is under way, what comes later."""
    shown: Drawn = [[Segment(" " + paint.fit(block.head, width - 2), paint.style(dark, "dim"))]]
    for line in block.text.split("\n"):
        mark, _, text = line.partition(" ")
        colour = {"✓": "good", "●": "accent"}.get(mark, "dim")
        look = paint.style(dark, "text" if mark == "●" else "dim", bold=mark == "●")
        shown += _led(_wrapped(text, width - 7, look, console), Segment(f"   {mark} ", paint.style(dark, colour)))
    return shown


def _result(text: str, width: int, dark: bool, console: Console) -> Drawn:
    """The begin of the answer of a tool, or of a notice."""
    look = paint.style(dark, "dim")
    lines = _wrapped(text, width - 6, look, console)
    shown = _led(lines[:_SHOWN_RESULT], Segment("   │ "), Segment("   │ "))
    if len(lines) > _SHOWN_RESULT:
        shown.append([Segment(f"   │ … {len(lines) - _SHOWN_RESULT} more lines", look)])
    return shown


def _safe(text: str) -> str:
    return "\n".join(paint.clean(line) for line in text.split("\n"))


def _wrapped(text: str, width: int, look: Style, console: Console) -> Drawn:
    lines = Text(_safe(text), end="").wrap(console, max(8, width))
    return [[Segment(line.plain.rstrip("\n"), look)] for line in lines]


def _markdown(text: str, width: int, dark: bool, console: Console) -> Drawn:
    from rich.markdown import Heading, Markdown  # it takes a while, and the first frame needs none of it

    Heading.LEVEL_ALIGN["h1"] = "left"
    made = Markdown(_safe(text), code_theme="ansi_dark" if dark else "ansi_light", hyperlinks=False)
    options = console.options.update(width=max(8, width), height=None)
    with console.use_theme(_theme(dark)):
        lines = [list(line) for line in console.render_lines(made, options, pad=False)]
    return [line for at, line in enumerate(lines) if not (at and _is_blank(line) and _is_blank(lines[at - 1]))]


def _draft(text: str, width: int, dark: bool, console: Console) -> Drawn:
    """An answer that is being written: its paragraphs one by one, so that only the last one is laid out again."""
    lines: Drawn = []
    for paragraph in _paragraphs(text):
        if lines:
            lines.append([])
        for piece in _pieces(paragraph):
            lines += _paragraph(piece, width, dark, console)
    return lines


@lru_cache(512)
def _paragraph(text: str, width: int, dark: bool, console: Console) -> Drawn:
    return _markdown(text, width, dark, console)


def _paragraphs(text: str) -> list[str]:
    """Split at empty lines, but not within code."""
    found, open_parts, is_code = list[str](), list[str](), False
    for part in text.split("\n\n"):
        open_parts.append(part)
        is_code ^= part.count("```") % 2 == 1
        if not is_code:
            found.append("\n\n".join(open_parts))
            open_parts = []
    return [one for one in [*found, "\n\n".join(open_parts)] if one.strip()]


def _pieces(paragraph: str) -> list[str]:
    """A long one is laid out piece by piece: each ends with a line, a sentence or a word; code stays code."""
    first_line = paragraph.partition("\n")[0]
    fence = f"{first_line[:40]}\n" if paragraph.startswith("```") else ""
    rest, found = paragraph, list[str]()
    while len(rest) > _LONGEST_PIECE + len(fence):
        part = rest[:_LONGEST_PIECE]
        ends = [
            part.rfind(mark, len(fence)) + len(mark) for mark in ("\n", ". ", " ") if part.rfind(mark, len(fence)) > 0
        ]
        at = ends[0] if ends else _LONGEST_PIECE
        found.append(rest[:at].rstrip("\n"))
        rest = fence + rest[at:]
    return [*found, rest]


def _is_blank(line: list[Segment]) -> bool:
    return not "".join(one.text for one in line).strip()


@cache
def _theme(dark: bool) -> Theme:
    """Headings are bold, code has the accent colour; nothing else is coloured."""
    plain, accent = paint.style(dark, "text", bold=True), paint.style(dark, "accent")
    heads = {f"markdown.h{level}": plain for level in range(1, 7)}
    names = ("markdown.code", "markdown.link", "markdown.link_url", "markdown.item.bullet", "markdown.item.number")
    dim = paint.style(dark, "dim")
    quiet = {"markdown.h1.border": dim, "markdown.hr": dim, "markdown.block_quote": dim}
    return Theme({**heads, **dict.fromkeys(names, accent), **quiet})
