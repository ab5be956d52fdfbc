"""Data goes to stdout, messages to stderr; escape codes in names and commands never reach a terminal."""

from __future__ import annotations

import os
import sys

import holdfast.light_json as light_json  # `from holdfast import …` would look the name up in the package first
from holdfast.cli import colours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from holdfast.errors import HoldfastError


def out(text: str) -> None:
    """A line of data."""
    sys.stdout.write(f"{text}\n")


def out_json(value: object) -> None:
    sys.stdout.write(f"{light_json.dumps(value)}\n")


def say(text: str, colour: str = colours.PLAIN) -> None:
    """A message, with `holdfast:` in that colour. One that cannot be written is dropped."""
    try:
        sys.stderr.write(f"{colours.paint('holdfast:', colour, 2)} {visible(text)}\n")
        sys.stderr.flush()
    except OSError:
        pass


def say_error(error: HoldfastError) -> None:
    say(f"{error.message.rstrip('.')}. Next: {error.next}", colours.RED)


def write(fd: int, data: bytes) -> None:
    """All of it, also to a pipe or terminal that another process made non-blocking."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            import select

            poll = select.poll()
            poll.register(fd, select.POLLOUT)
            poll.poll()


def visible(text: str) -> str:
    """The text on one line, with control characters shown as escapes."""
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() else repr(c)[1:-1] for c in text])


def brief(text: str, longest: int = 200) -> str:
    """A text as part of a line: cut, and line ends shown."""
    flat = text[: longest + 1].replace("\n", "⏎")
    return flat if len(text) <= longest else f"{flat[:longest]}…"


def visible_lines(text: str) -> str:
    """As `visible`, but lines and tabs stay."""
    return "\n".join(["\t".join(map(visible, line.split("\t"))) for line in text.split("\n")])


def table(
    head: Sequence[str] | None, rows: Iterable[Sequence[str]], colour_of: Callable[[int, int], str] | None = None
) -> str:
    """Aligned columns; on a terminal the last one is cut to its width. `colour_of` gives the colour of a cell."""
    heads = [] if head is None else [list(head)]
    cells = [*heads, *([visible(cell) for cell in row] for row in rows)]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    width_left = max(10, terminal_size()[0] - sum(widths[:-1]) - 2 * (len(widths) - 1))
    lines = [_fit(row, widths, width_left) for row in cells]
    if colour_of is not None and colours.are_on():
        for row in lines[: len(heads)]:
            row[:] = [colours.paint(cell, colours.BOLD) for cell in row]
        for at, row in enumerate(lines[len(heads) :]):
            row[:] = [colours.paint(cell, colour_of(at, column)) for column, cell in enumerate(row)]
    return "\n".join(["  ".join(row).rstrip() for row in lines])


def _fit(row: Sequence[str], widths: Sequence[int], width_left: int) -> list[str]:
    *cells, last = row
    padded = [cell.ljust(width + len(cell) - _width(cell)) for cell, width in zip(cells, widths, strict=False)]
    return [*padded, shortened(last, width_left)]


def is_drawable() -> bool:
    """Whether stdout is a terminal on which lines can be drawn again in place."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def terminal_size() -> tuple[int, int]:
    """Columns and rows of stdout; huge numbers if it is not a terminal."""
    try:
        cols, rows = os.get_terminal_size(1)
    except OSError:
        return 1 << 30, 1 << 30
    return cols or 80, rows or 24


def shortened(text: str, width_left: int) -> str:
    """The text, cut to that many columns."""
    width_left = max(1, width_left)
    if _width(text) <= width_left:
        return text
    while _width(text) > width_left - 1:
        text = text[: width_left - 1] if len(text) > width_left else text[:-1]
    return f"{text}…"


def _width(text: str) -> int:
    """The columns that a terminal uses for it."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
