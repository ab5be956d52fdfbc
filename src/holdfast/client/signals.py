"""Signals by name and by number, without the import of `signal`, which brings in `enum`."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]

from holdfast.errors import BadValue

_NUMBERS: dict[str, int] = {
    name: number for name, number in vars(_signal).items() if name.startswith("SIG") and name[3:].isalnum()
}


def signal_name(number: int) -> str:
    """`9` -> `SIGKILL`."""
    return next((name for name, known in _NUMBERS.items() if known == number), f"signal {number}")


def signal_number(signal: int | str) -> int:
    """`KILL`, `sigkill` or `9` -> `9`. Raises BadValue for what is no signal."""
    if isinstance(signal, int):
        return signal
    text = signal.strip().upper()
    if text.isascii() and text.isdigit():
        return int(text[:9])
    number = _NUMBERS.get(text if text.startswith("SIG") else f"SIG{text}")
    if number is None:
        raise BadValue(f"no signal {signal[:80]!r}", next="kill -l lists their names")
    return number
