"""Signals that can be polled for, instead of handlers that run anywhere."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

SIGHUP: int = _signal.SIGHUP
SIGINT: int = _signal.SIGINT
SIGQUIT: int = _signal.SIGQUIT
SIGCONT: int = _signal.SIGCONT
SIGTERM: int = _signal.SIGTERM
SIGWINCH: int = _signal.SIGWINCH


def is_default(number: int) -> bool:
    """Whether a signal has its default action: `nohup` ignores SIGHUP, and that stays so."""
    return bool(_signal.getsignal(number) == _signal.SIG_DFL)


class Signals:
    """Catches these signals in its block. The descriptor is readable after a signal; `take` returns the signals."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = numbers
        self._came: list[int] = []

    def __enter__(self) -> Self:
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._old_fd = _signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._old = {number: _signal.signal(number, self._note) for number in self._numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._old.items():
            _signal.signal(number, handler)
        _signal.set_wakeup_fd(self._old_fd)
        os.close(self._read)
        os.close(self._write)

    def fileno(self) -> int:
        return self._read

    def take(self) -> list[int]:
        try:
            os.read(self._read, 4096)
        except BlockingIOError:
            pass
        came, self._came = self._came, []
        return came

    def _note(self, number: int, _frame: object) -> None:
        self._came.append(number)
