"""A terminal that does not show what is typed, while it is asked for something secret."""

from __future__ import annotations

import termios

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LOCAL_FLAGS = 3


class Echo:
    """Of the terminal on stdin. Whatever happens, `on` is called at the end."""

    def __init__(self) -> None:
        self._before: Any = None

    def off(self) -> None:
        if self._before is None:
            self._before = termios.tcgetattr(0)
            settings = termios.tcgetattr(0)
            settings[_LOCAL_FLAGS] = settings[_LOCAL_FLAGS] & ~termios.ECHO | termios.ECHONL
            termios.tcsetattr(0, termios.TCSAFLUSH, settings)

    def on(self) -> None:
        """As it was before."""
        if self._before is not None:
            termios.tcsetattr(0, termios.TCSAFLUSH, self._before)
            self._before = None
