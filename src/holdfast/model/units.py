"""Sizes, durations and terminal sizes as users write them."""

from __future__ import annotations

from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: The longest duration; it fits every clock.
LONGEST = 100 * 365 * 86400.0

#: The most columns or rows of a terminal.
LARGEST_WINDOW = 1000

#: A plain number from here on is a time in Unix seconds, a smaller one a duration.
_FIRST_MOMENT = 1e8
_LAST_MOMENT = 1e11

_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_TIMES = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LARGEST = (1 << 63) - 1
_BLOCKS = " ▁▂▃▄▅▆▇█"


def parse_size(text: str) -> int:
    """`10M` -> bytes; binary units, with or without B or iB."""
    stripped = text.strip().upper()
    for suffix in ("IB", "B"):
        stripped = stripped.removesuffix(suffix)
    unit = stripped[-1:] if stripped[-1:] in _SIZES else ""
    try:
        size = int(float(stripped.removesuffix(unit)) * _SIZES[unit])
    except (ValueError, OverflowError):
        size = -1
    if not 0 <= size <= _LARGEST:
        raise BadValue(f"{text[:80]!r} is not a size", next="write it as 500K, 10M or 2G")
    return size


def parse_seconds(text: str) -> float:
    """`90`, `1.5s`, `500ms`, `10m`, `2h` or `1d` -> seconds."""
    stripped = text.strip()
    unit = next((unit for unit in _TIMES if stripped.endswith(unit)), "s")
    try:
        seconds = float(stripped.removesuffix(unit)) * _TIMES[unit]
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LONGEST:  # also refuses nan
        raise BadValue(f"{text[:80]!r} is not a duration", next="write seconds, or 500ms, 90s, 10m, 2h, 1d")
    return seconds


def parse_moment(text: str, now: float) -> float:
    """`10m` (ago), `2026-11-17T10:00` (local time, unless it names a zone) or Unix seconds -> Unix seconds."""
    stripped = text.strip()
    if stripped.replace(".", "", 1).isdecimal() and stripped.isascii() and float(stripped) >= _FIRST_MOMENT:
        moment = float(stripped)
    elif stripped[:4].isdecimal() and stripped[4:5] == "-":
        moment = _calendar(stripped)
    else:
        try:
            moment = now - parse_seconds(text)
        except BadValue:
            moment = -1.0
    if not 0 <= moment <= _LAST_MOMENT:
        raise BadValue(f"{text[:80]!r} is not a time", next="write 10m (ago), 2026-11-17T10:00, or Unix seconds")
    return moment


def _calendar(text: str) -> float:
    from datetime import datetime

    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return -1.0


def moment_text(moment: float) -> str:
    """Local time, with milliseconds: `2026-11-17T10:00:00.250`."""
    from time import localtime, strftime

    millis = int(moment * 1000)
    return f"{strftime('%Y-%m-%dT%H:%M:%S', localtime(millis // 1000))}.{millis % 1000:03d}"


def parse_window(text: str) -> tuple[int, int]:
    """`COLSxROWS` -> (cols, rows)."""
    cols, x, rows = text.lower().partition("x")
    if not (x and cols.isascii() and cols.isdigit() and rows.isascii() and rows.isdigit()):
        raise BadValue(f"{text[:80]!r} is not a terminal size", next="write it as COLSxROWS, for example 120x30")
    return checked_window(int(cols[:9]), int(rows[:9]))


def checked_window(cols: int, rows: int) -> tuple[int, int]:
    """Returns both. Raises BadValue for a size that no terminal can have."""
    if not (1 <= cols <= LARGEST_WINDOW and 1 <= rows <= LARGEST_WINDOW):
        raise BadValue(
            f"a terminal cannot be {_short(cols)}x{_short(rows)}",
            next=f"columns and rows are between 1 and {LARGEST_WINDOW}",
        )
    return cols, rows


def _short(number: int) -> str:
    return str(number) if abs(number) < 10**9 else "…"


def size_text(size: int) -> str:
    """`1536` -> `1.5K`: at most five characters up to 9999T."""
    if size < 1024:
        return str(size)
    value = float(size)
    for unit in "KMGT":
        value /= 1024
        if value < 9.95:
            return f"{value:.1f}{unit}"
        if value < 1023.5 or unit == "T":
            break
    return f"{value:.0f}{unit}"


def duration_text(seconds: float) -> str:
    """`0.25` -> `0.2s`; from ten seconds on as `age_text`."""
    return f"{max(0.0, seconds):.1f}s" if seconds < 9.95 else age_text(seconds)


def age_text(seconds: float) -> str:
    """`3700.5` -> `1h01m`: the two units that matter."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    for size, unit, part, sub in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size}{unit}{rest:02d}{sub}" if rest else f"{whole // size}{unit}"
    return f"{whole}s"


def sparkline(values: Sequence[float], width: int, full: float) -> str:
    """The last `width` values as a line of blocks, the highest for `full` and more. Any value above 0 is visible."""
    top = len(_BLOCKS) - 1
    shares = [min(1.0, value / full) if full > 0 else 0.0 for value in values]
    steps = [max(1 if share > 0 else 0, round(top * share)) for share in shares]
    return "".join(_BLOCKS[step] for step in steps[-width:]).rjust(width)
