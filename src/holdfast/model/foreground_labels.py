"""Labels of processes that the terminal tool runs in the foreground. No I/O."""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: The call that started the process, and for how many seconds it is in the foreground at most.
CALL, WINDOW = "holdfast.call", "holdfast.window"


def is_foreground(labels: Mapping[str, str] | None, age: float) -> bool:
    """Whether the call that started it still waits for it, `age` seconds after the start. Labels may be invalid."""
    if not labels or CALL not in labels:
        return False
    try:
        window = float(labels.get(WINDOW, 0))
    except ValueError:
        return False
    return math.isfinite(window) and age < window
