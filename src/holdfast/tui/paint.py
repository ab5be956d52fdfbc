"""Colours in light and dark, and text that is safe and fits. The only escape codes that reach the terminal are ours.

What draws is imported where it is used: the first frame needs none of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.segment import Segment
    from rich.style import Style
    from textual.theme import Theme

#: Text with the name of its colour; True: bold.
Part = tuple[str, str, bool]

#: Colours by name; each has a contrast of 4.5 or more on its background.
DARK = {
    "text": "#d8dee6",
    "dim": "#98a2b0",
    "accent": "#7fb2ff",
    "good": "#6cc38a",
    "bad": "#ff8480",
    "warn": "#e6b84e",
    "back": "#14181d",
    "bar": "#1e242c",
    "cursor": "#2b3a52",
    "thumb": "#4a5665",
}
LIGHT = {
    "text": "#1f2630",
    "dim": "#5a6472",
    "accent": "#0b57c2",
    "good": "#17692f",
    "bad": "#b3211d",
    "warn": "#7d5200",
    "back": "#fbfbfa",
    "bar": "#eceeef",
    "cursor": "#cfe0fa",
    "thumb": "#b4bcc6",
}


def theme(name: str) -> Theme:
    """`dark` or `light`, for Textual."""
    from textual.theme import Theme

    colours = DARK if name == "dark" else LIGHT
    return Theme(
        f"holdfast-{name}",
        primary=colours["accent"],
        secondary=colours["accent"],
        accent=colours["accent"],
        warning=colours["warn"],
        error=colours["bad"],
        success=colours["good"],
        foreground=colours["text"],
        background=colours["back"],
        surface=colours["back"],
        panel=colours["bar"],
        dark=name == "dark",
    )


_styles: dict[tuple[bool, str, bool, str], Style] = {}


def style(dark: bool, name: str, *, bold: bool = False, on: str = "") -> Style:
    """A style by the names of its colours."""
    key = (dark, name, bold, on)
    if (found := _styles.get(key)) is None:
        from rich.style import Style

        colours = DARK if dark else LIGHT
        found = Style(color=colours[name], bgcolor=colours[on] if on else None, bold=bold or None)
        _styles[key] = found
    return found


#: Control characters, marks of direction, and characters without width that can hide text.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb\ud800-\udfff]")


def clean(text: str) -> str:
    """One line without control characters: tabs become spaces, line ends ⏎, everything else is left out."""
    if text.isprintable():
        return text
    return _UNSAFE.sub("", text.replace("\t", "    ").rstrip("\r\n").replace("\n", "⏎"))


def fit(text: str, width: int, right: bool = False) -> str:
    """Exactly as wide as this; a longer text ends with an ellipsis."""
    if width <= 0:
        return ""
    text = clean(text)
    if text.isascii():
        length = len(text)
        if length > width:
            return text[: width - 1] + "…"
    else:
        length = _cells(text)
    if length > width:
        from rich.cells import set_cell_size

        return set_cell_size(text, width - 1) + "…" if width > 1 else "…"
    return " " * (width - length) + text if right else text + " " * (width - length)


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def joined(*parts: tuple[str, Style]) -> list[Segment]:
    from rich.segment import Segment

    return [Segment(text, look) for text, look in parts if text]


def drawn(parts: Iterable[Part], dark: bool) -> list[Segment]:
    return joined(*((text, style(dark, colour, bold=is_bold)) for text, colour, is_bold in parts))
