"""Searching many bytes for plain text with the C library, at the speed of memory."""

from __future__ import annotations

import ctypes

_libc = ctypes.CDLL(None)
_memmem = _libc.memmem
_memmem.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
_memmem.restype = ctypes.c_void_p
_strcspn = _libc.strcspn
_strcspn.argtypes = (ctypes.c_char_p, ctypes.c_char_p)
_strcspn.restype = ctypes.c_size_t

#: Control characters but tab, newline and NUL, at which strcspn stops anyhow. It searches for up to 16 at once.
_CONTROLS = (bytes((*range(1, 9), *range(11, 19))), bytes((*range(19, 32), 127)))

_SAMPLE = 16 << 10
#: A character that was found so often without the text is not rare.
_FEW = 64


class Needle:
    """A text to search for. A character of it that a sample of the data lacks finds it fastest."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._rarest: int | None = None

    def find(self, data: bytes, at: int, stop: int) -> int:
        """As `data.find(text, at, stop)`, in linear time for any text."""
        if stop - at < len(self.text):
            return -1
        if self._rarest is None:
            self._rarest = self._rarest_in(data[:_SAMPLE])
        if self._rarest >= 0:
            return self._by_letter(data, at, stop, self._rarest)
        return self._by_all(data, at, stop)

    def _rarest_in(self, sample: bytes) -> int:
        return next((n for n in range(len(self.text)) if self.text[n] not in sample), -1)

    def _by_letter(self, data: bytes, at: int, stop: int, rarest: int) -> int:
        letter = self.text[rarest]
        for _ in range(_FEW):
            found = data.find(letter, at + rarest, stop - len(self.text) + rarest + 1)
            if found < 0 or data.startswith(self.text, found - rarest):
                return max(found - rarest, -1)
            at = found - rarest + 1
        self._rarest = -1
        return self._by_all(data, at, stop)

    def _by_all(self, data: bytes, at: int, stop: int) -> int:
        begin = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
        found = _memmem(begin + at, stop - at, self.text, len(self.text))
        return -1 if found is None else found - begin


def has_controls(data: bytes) -> bool:
    """Whether there is any control character but tab and newline."""
    return any(_strcspn(data, controls) < len(data) for controls in _CONTROLS)
