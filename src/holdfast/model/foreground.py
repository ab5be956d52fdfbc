"""What the terminal tool runs in the foreground: known by its labels. No I/O."""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Labels of what the terminal tool started: which call did, and how long it was in the foreground at most.
CALL, WINDOW = "holdfast.call", "holdfast.window"


def is_foreground(labels: Mapping[str, str] | None, age: float) -> bool:
    """Whether the call that started it waits for it, so many seconds after the start. Labels may say anything."""
    if not labels or CALL not in labels:
        return False
    try:
        window = float(labels.get(WINDOW, 0))
    except ValueError:
        return False
    return math.isfinite(window) and age < window
