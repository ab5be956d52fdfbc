"""The first frame: the list of processes, drawn while Textual is still being imported, which takes three times as long.

A thread asks the daemon, which it starts where there is none, and draws as the UI will. Nothing of it stays when the UI
draws itself, but the processes that were read.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread

from holdfast.errors import HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.process import Process
    from holdfast.tui.paint import Part

_BEGIN, _BOLD, _PLAIN = "\x1b[?25l\x1b[H", "\x1b[1m", "\x1b[22m"
_NEXT_LINE = "\x1b[K\r\n"
_LAST_LINES = 2


class FirstFrame:
    """`begin`, then `end` before anything else draws."""

    def __init__(self, theme: str) -> None:
        self._theme = theme
        self._found: list[Process] | None = None
        self._is_over = False
        self._drawing = allocate_lock()

    def begin(self) -> None:
        start_new_thread(self._run, ())

    def end(self) -> list[Process] | None:
        """No more is drawn. The processes that were read; None where the daemon has not answered yet."""
        with self._drawing:
            self._is_over = True
            return self._found

    def _run(self) -> None:
        from holdfast.client.sync import connect

        try:
            with connect() as client:
                found = client.ps(all=True, used=False)
            data = frame(found, *os.get_terminal_size(1), self._theme).encode(errors="replace")
        except (HoldfastError, OSError):  # the UI tries again, and says what is wrong
            return
        with self._drawing:
            if not self._is_over:
                self._found = found
                os.write(1, data)


def frame(found: list[Process], width: int, height: int, theme: str) -> str:
    """As the UI draws it, but for the tabs of sessions."""
    from holdfast.tui.help_keys import LIST_KEYS
    from holdfast.tui.paint import fit
    from holdfast.tui.processes.rows import AGENTS, ended_ids, note_text, ordered, process_parts, selected
    from holdfast.tui.user_needs import MOST_LINES, need_parts, needs

    rows = ordered(selected(found, ""), ended_ids(found))
    note = f" {note_text(found)} "
    running = sum(1 for one in found if one.status != "ended" and one.session != AGENTS)
    mark = f" ●{running}" if running else ""
    with_agent = {str((one.labels or {}).get("holdfast.agent")) for one in found if one.session == AGENTS}
    wanted = needs((), rows, set(), with_agent)
    tab = _line([(" all", "text", True), (f"{mark} ", "good", False)], width, "cursor", theme)
    space = max(0, width - len(mark) - 5)
    lines: list[tuple[list[Part], str]] = [([(fit(note, space, right=True), "dim", False)], "bar")]
    lines += [(need_parts(wanted, at, width), "bar") for at in range(min(MOST_LINES, len(wanted)))]
    left = max(0, height - len(lines) - _LAST_LINES)
    shown = [(process_parts(one, width - 1), "back" if at else "cursor") for at, one in enumerate(rows[:left])]
    lines += shown + [([], "back")] * (left - len(shown) + 1)
    lines.append(([(" " + fit(LIST_KEYS, width - 1), "text", False)], "bar"))
    return _BEGIN + tab + _NEXT_LINE.join(_line(parts, width, on, theme) for parts, on in lines[:height]) + "\x1b[K"


def _line(parts: list[Part], width: int, on: str, theme: str) -> str:
    from holdfast.tui.paint import DARK, LIGHT, fit

    colours = DARK if theme == "dark" else LIGHT
    drawn = [_colour(48, colours[on])]
    for text, colour, is_bold in parts:
        shown = text if len(text) <= width else fit(text, width)
        width -= len(shown)
        drawn.append(f"{_colour(38, colours[colour])}{_BOLD if is_bold else _PLAIN}{shown}" if shown else "")
    return "".join(drawn)


def _colour(ground: int, value: str) -> str:
    """Terminals that do not say that they have all colours get none here."""
    if os.environ.get("COLORTERM") not in ("truecolor", "24bit") or "NO_COLOR" in os.environ:
        return ""
    red, green, blue = (int(value[at : at + 2], 16) for at in (1, 3, 5))
    return f"\x1b[{ground};2;{red};{green};{blue}m"
