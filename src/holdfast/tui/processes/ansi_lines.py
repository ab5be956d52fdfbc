"""A line of output with its colours, and nothing else of what it does to a terminal."""

from __future__ import annotations

import re

from rich.text import Text

from holdfast.model.text import TextView
from holdfast.tui import paint

_COLOUR = re.compile(r"(\x1b\[[0-9;:]*m)")


def line_text(data: bytes) -> Text:
    """One line of a log: colours stay; moves, titles and control characters go."""
    raw = data.decode(errors="replace")
    if raw.isascii() and raw.rstrip("\r\n").isprintable():
        return Text(raw.rstrip("\r\n"), end="")
    view = TextView(colours=True)
    return coloured(view.feed(data.rstrip(b"\n")) + view.close())


def coloured(line: str) -> Text:
    """A line in which only colours are escape codes."""
    if "\x1b" not in line:
        return Text(paint.clean(line), end="")
    parts = _COLOUR.split(line)
    parts[::2] = [paint.clean(part) for part in parts[::2]]
    return Text.from_ansi("".join(parts), no_wrap=True, end="")
