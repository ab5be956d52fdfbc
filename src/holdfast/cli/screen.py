"""Our own terminal: raw while attached, and always restored afterwards."""

from __future__ import annotations

import re
import termios
import tty

from holdfast.cli import console

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

#: What asks the terminal something. Replayed, it would be answered into a process that asked long ago.
_QUERIES = re.compile(
    rb"\x1b\[\??[56]n|\x1b\[[>=]?[0-9;]*c|\x1b\[\?[0-9;]+\$p|\x1b\[>[0-9]*q|\x1b\[(?:1[1-9]|2[01])t"
    rb"|\x1b\][0-9;]+;\?(?:\x07|\x1b\\)|\x1bP\+q[^\x1b]*\x1b\\|\x1bP\$q[^\x1b]*\x1b\\|\x05"
)
_MODE = re.compile(rb"\x1b\[\?([0-9;]+)([hl])")
_LONGEST_MODE = 64

_SCREENS = frozenset({b"47", b"1047", b"1049"})
#: Modes that are on by default: shown cursor, autowrap.
_ON_BY_NATURE = frozenset({b"25", b"7"})


def without_queries(data: bytes) -> bytes:
    return _QUERIES.sub(b"", data)


class Undo:
    """Watches what a process does to the terminal, to undo it afterwards. No I/O."""

    def __init__(self) -> None:
        self._changed: set[bytes] = set()
        self._tail = b""

    @property
    def is_full_screen(self) -> bool:
        return bool(self._changed & _SCREENS)

    def feed(self, data: bytes) -> None:
        seen = self._tail + data
        self._tail = seen[-_LONGEST_MODE:]
        for modes, switch in _MODE.findall(seen):
            for mode in modes.split(b";"):
                if (switch == b"h") != (mode in _ON_BY_NATURE):
                    self._changed.add(mode)
                else:
                    self._changed.discard(mode)

    def bytes(self) -> bytes:
        """What sets the terminal back: modes, colours, character set, scrolling region kept."""
        resets = [b"\x1b[?%s%s" % (mode, b"h" if mode in _ON_BY_NATURE else b"l") for mode in sorted(self._changed)]
        return b"".join(resets) + b"\x1b[0m\x1b(B\x1b>\r\n"


class RawTerminal:
    """The terminal in raw mode for as long as the block lasts."""

    def __init__(self, fd: int, undo: Undo) -> None:
        self._fd = fd
        self._undo = undo

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._fd)
        tty.setraw(self._fd, termios.TCSADRAIN)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            console.write(1, self._undo.bytes())
        finally:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)
