"""The alternate screen of the terminal, drawn again in place, and the keys that are pressed."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import time
import tty

from holdfast.cli import console

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Self, TypeVar

    T = TypeVar("T")

_ENTER, _LEAVE = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"
#: Seconds between two looks at the size of the terminal.
_SIZE_INTERVAL = 0.25
_SEQUENCES = {
    **{
        f"\x1b{kind}{end}": name
        for kind in "[O"
        for end, name in zip("ABHF", ("up", "down", "home", "end"), strict=True)
    },
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[1~": "home",
    "\x1b[4~": "end",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
}


class FullScreen:
    """The alternate screen for as long as the block lasts; afterwards the terminal is as before."""

    def __init__(self) -> None:
        self._typed: list[str] = []

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(0)
        self._term = signal.signal(signal.SIGTERM, _end)
        tty.setraw(0, termios.TCSADRAIN)
        console.write(1, _ENTER)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            console.write(1, _LEAVE)
        finally:
            termios.tcsetattr(0, termios.TCSADRAIN, self._before)
            signal.signal(signal.SIGTERM, self._term)

    def draw(self, page: str) -> None:
        """As many lines as fit. The terminal cuts long lines."""
        rows = os.get_terminal_size(1).lines
        lines = [f"{line}\x1b[K" for line in page.split("\n")[:rows]]
        text = "\r\n".join(lines)
        console.write(1, f"\x1b[?7l\x1b[H{text}\x1b[J\x1b[?7h".encode(errors="backslashreplace"))

    def key(self, seconds: float) -> str:
        """The next key: a character, or the name of a key such as `up` or `enter`. Empty after that many seconds, or
        if the size of the terminal changed.
        """
        until, size = time.monotonic() + seconds, os.get_terminal_size(1)
        while not self._typed:
            left = until - time.monotonic()
            if left <= 0 or os.get_terminal_size(1) != size:
                return ""
            if select.select([0], [], [], min(left, _SIZE_INTERVAL))[0]:
                self._typed = _keys(os.read(0, 1024))
        return self._typed.pop(0)

    def paused(self, work: Callable[[], T]) -> T:
        """Do something on the terminal as it was before, and come back."""
        self.__exit__()
        try:
            return work()
        finally:
            self.__enter__()


def _keys(typed: bytes) -> list[str]:
    """The keys of some input; `q` for its end. Unknown sequences are left out."""
    if not typed:
        return ["q"]
    found, text = [], typed.decode(errors="replace")
    while text:
        name = next((name for name in _SEQUENCES if text.startswith(name)), None)
        if name is not None:
            found.append(_SEQUENCES[name])
            text = text[len(name) :]
        elif text.startswith(("\x1b[", "\x1bO")):
            end = next((at for at, c in enumerate(text[2:], 2) if "@" <= c <= "~"), len(text))
            text = text[end + 1 :]
        else:
            found.append(text[0])
            text = text[1:]
    return found


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
