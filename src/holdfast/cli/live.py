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
    from types import FrameType
    from typing import Self

_ENTER, _LEAVE = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"
#: Seconds between two looks at the size of the terminal.
_SIZE_INTERVAL = 0.25


class FullScreen:
    """The alternate screen for as long as the block lasts; afterwards the terminal is as before."""

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
        """The next key; empty after that many seconds, or if the size of the terminal changed."""
        until, size = time.monotonic() + seconds, os.get_terminal_size(1)
        while (left := until - time.monotonic()) > 0 and os.get_terminal_size(1) == size:
            if select.select([0], [], [], min(left, _SIZE_INTERVAL))[0]:
                return os.read(0, 1).decode(errors="replace") or "q"
        return ""


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
