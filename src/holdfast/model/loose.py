"""Values out of JSON that another release, or an edit by hand, may have written: an invalid one becomes a default."""

from __future__ import annotations

from typing import Any

_LARGEST = (1 << 63) - 1
#: More seconds than any clock of ours will ever show.
_LATEST = 1e12


def whole(value: object, default: int = 0) -> int:
    """A count or an offset."""
    is_one = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST
    return value if is_one and isinstance(value, int) else default


def moment(value: object) -> float | None:
    """A time or a span of it; None for what is none."""
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
    """Numbers by name, without those that are none."""
    return {str(name): whole(number) for name, number in table(value).items() if whole(number, -1) >= 0}


def plain(value: object) -> dict[str, Any] | None:
    """An object that can be written as JSON again; None for anything else, and for an empty one."""
    import json  # not needed by those who read nothing

    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return None
    return table(value) or None
