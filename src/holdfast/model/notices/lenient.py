"""Values from JSON that another release or a user may have written: an invalid one becomes a default."""

from __future__ import annotations

from typing import Any

_LARGEST = (1 << 63) - 1
#: Later than any valid time, in seconds.
_LATEST = 1e12


def whole(value: object, default: int = 0) -> int:
    """A count or an offset."""
    is_one = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST
    return value if is_one and isinstance(value, int) else default


def moment(value: object) -> float | None:
    """A time or a duration; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if -_LATEST <= value <= _LATEST else None  # also refuses nan


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def table(value: object) -> dict[str, Any]:
    """An object of JSON; empty for anything else."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """An array of JSON; empty for anything else."""
    return list(value) if isinstance(value, (list, tuple)) else []


def counts(value: object) -> dict[str, int]:
    """Counts by name, without invalid ones."""
    return {str(name): whole(number) for name, number in table(value).items() if whole(number, -1) >= 0}


def plain(value: object) -> dict[str, Any] | None:
    """An object that can be written as JSON again; None for anything else, and for an empty one."""
    import json  # most imports of this module never call this

    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return None
    return table(value) or None
