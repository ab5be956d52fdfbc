"""Signals by name and by number, without the import of `signal`, which brings in `enum`."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]

from holdfast.errors import BadValue

_NUMBERS: dict[str, int] = {
    name: number for name, number in vars(_signal).items() if name.startswith("SIG") and name[3:].isalnum()
}
_FIRST_REAL_TIME: int = _signal.SIGRTMIN
_LAST_REAL_TIME: int = _signal.SIGRTMAX


def signal_name(number: int) -> str:
    """`9` -> `SIGKILL`, `35` -> `SIGRTMIN+1`."""
    if _FIRST_REAL_TIME < number < _LAST_REAL_TIME:
        return f"SIGRTMIN+{number - _FIRST_REAL_TIME}"
    return next((name for name, known in _NUMBERS.items() if known == number), f"signal {number}")


def signal_number(signal: int | str) -> int:
    """`KILL`, `sigkill` or `9` -> `9`; `RTMIN+1` -> `35`. Raises BadValue for what is no signal."""
    if isinstance(signal, int):
        return signal
    if not isinstance(signal, str):
        raise BadValue(f"a signal is a number or a name, not {signal!r:.80}", next="kill -l lists their names")
    text = signal.strip().upper()
    if text.isascii() and text.isdigit():
        return int(text[:9])
    number = _NUMBERS.get(text if text.startswith("SIG") else f"SIG{text}") or _real_time(text.removeprefix("SIG"))
    if number is None:
        raise BadValue(f"no signal {signal[:80]!r}", next="kill -l lists their names")
    return number


def signal_names() -> list[str]:
    """All names without SIG, in the order of their numbers."""
    return [name[3:] for name in sorted(_NUMBERS, key=_NUMBERS.__getitem__)]


def _real_time(text: str) -> int | None:
    """`RTMIN+3` or `RTMAX-3` -> its number; None when that is none."""
    name, steps = text[:6], text[6:]
    if not (steps.isascii() and steps.isdigit() and len(steps) < 4):
        return None
    number = {"RTMIN+": _FIRST_REAL_TIME + int(steps), "RTMAX-": _LAST_REAL_TIME - int(steps)}.get(name)
    return number if number is not None and _FIRST_REAL_TIME <= number <= _LAST_REAL_TIME else None
