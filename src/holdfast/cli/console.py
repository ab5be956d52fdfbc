"""Data goes to stdout, messages to stderr; escape codes in names and commands never reach a terminal."""

from __future__ import annotations

import os
import sys

import holdfast.light_json as light_json  # `from holdfast import …` would look the name up in the package first
from holdfast.cli import colours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holdfast.errors import HoldfastError

#: The least width of the last column of a table, while others can be left out.
_LEAST_LAST = 10
#: To what the widest columns are cut, and then the last one, step by step.
_FLOORS = ((12, 8), (8, 6), (4, 1))


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


def say_dropped(start: int, kept: int, shown: int) -> None:
    """The output from `start` to `kept` was dropped before it was read; it goes on at `shown`, where a line begins."""
    which = f"the first {kept} bytes" if start == 0 else f"{kept - start} bytes from {start} on"
    line = ", with a line" if shown > kept else ""
    say(f"{which} are no longer kept; the output continues at byte {shown}{line}")


def say_error(error: HoldfastError) -> None:
    message = error.message.rstrip(".")
    say(f"{message}{'' if message.endswith(('?', '!')) else '.'} Next: {error.next}", colours.RED)


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


def wrapped(text: str, indent: str = "", hanging: str = "") -> str:
    """The text with control characters shown, at most as wide as the terminal; its words stay whole if they can."""
    cols, text = terminal_size()[0], visible(text)
    if len(indent) + width(text) <= cols:
        return indent + text
    import textwrap

    return textwrap.fill(
        text, max(10, cols), initial_indent=indent, subsequent_indent=indent + hanging, break_on_hyphens=False
    )


def visible_lines(text: str) -> str:
    """As `visible`, but lines and tabs stay."""
    return "\n".join(["\t".join(map(visible, line.split("\t"))) for line in text.split("\n")])


def table(
    head: Sequence[str] | None,
    rows: Iterable[Sequence[str]],
    colour_of: Callable[[int, int], str] | None = None,
    *,
    drop: Sequence[str] = (),
    short: Mapping[str, Sequence[str]] | None = None,
    link: Callable[[str, str], str] | None = None,
    indent: int = 0,
    least: int = _LEAST_LAST,
) -> str:
    """Aligned columns; on a terminal no line is wider than it. `colour_of` gives the colour of a cell.

    A narrow terminal has fewer columns: those named in `drop` are left out, the first one first, until the rest fits;
    one that is also in `short` gets these cells instead. Then the widest are cut. `link` makes links of a cell: it is
    called with the name of the column and the text. `indent`: columns that the caller needs before each line. `least`:
    the width of the last column while others can be left out. Without `head` there is no line above the
    rows, and columns are named "0", "1" and so on.
    """
    body = [[visible(cell) for cell in row] for row in rows]
    if head is None:
        numbers = [str(at) for at in range(len(body[0]) if body else 0)]
        headed = table(numbers, body, colour_of, drop=drop, short=short, link=link, indent=indent, least=least)
        return headed.partition("\n")[2]
    cells = [list(head), *body]
    columns = [list(column) for column in zip(*cells, strict=True)]
    widths = [max(map(width, column)) for column in columns]
    shown = _fitting(head, columns, widths, drop, short or {}, terminal_size()[0] - indent, least)
    is_painted = colour_of is not None and colours.are_on()
    lines: list[list[str]] = [[] for _ in cells]
    for at in shown:
        is_last = at == shown[-1]
        for row, cell in enumerate(columns[at]):
            text = shortened(cell, widths[at])
            text = text if is_last else text.ljust(widths[at] + len(text) - width(text))
            if link is not None and row:
                text = link(head[at], text)
            if is_painted and colour_of is not None:
                text = colours.paint(text, colour_of(row - 1, at) if row else colours.BOLD)
            lines[row].append(text)
    return "\n".join(["  ".join(line).rstrip() for line in lines])


def _fitting(
    head: Sequence[str],
    columns: list[list[str]],
    widths: list[int],
    drop: Sequence[str],
    short: Mapping[str, Sequence[str]],
    cols: int,
    least_last: int,
) -> list[int]:
    """The columns that are shown. Changes cells and widths until they fit."""
    shown = list(range(len(head)))

    def least_of(at: int) -> int:
        return widths[at] if head[at] in short else min(widths[at], least_last)

    least = least_of(shown[-1])

    def excess() -> int:
        return sum(widths[at] for at in shown[:-1]) + 2 * (len(shown) - 1) + least - cols

    for name in drop:
        if excess() <= 0:
            break
        at = head.index(name)
        if name in short:
            columns[at][1:] = short[name]
            widths[at] = max(map(width, columns[at]))
        else:
            shown.remove(at)
        least = least_of(shown[-1])
    for floor, least_cut in _FLOORS:
        while excess() > 0 and len(shown) > 1 and max(widths[at] for at in shown[:-1]) > floor:
            widest = max(shown[:-1], key=lambda at: widths[at])
            widths[widest] = max(floor, widths[widest] - excess())
        least = max(min(least, least_cut), least - max(0, excess()))
    while excess() > 0 and len(shown) > 1:
        shown.remove(shown[-2])
    widths[shown[-1]] = max(1, cols - sum(widths[at] + 2 for at in shown[:-1]))
    return shown


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
    if width(text) <= width_left:
        return text
    while width(text) > width_left - 1:
        text = text[: width_left - 1] if len(text) > width_left else text[:-1]
    return f"{text}…"


def width(text: str) -> int:
    """The columns that a terminal uses for it. Links take none."""
    if "\x1b]8;" in text:
        before, _, rest = text.partition("\x1b]8;;")
        return width(before) + width(rest.partition("\x1b\\")[2])
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
