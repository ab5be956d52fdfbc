"""How many processes may run at once."""

from __future__ import annotations

from collections.abc import Collection

from holdfast.errors import LimitReached
from holdfast.model.ids import ProcessId

_NAMED_AT_MOST = 20


def check_room(living: Collection[ProcessId], at_most: int) -> None:
    """Raises LimitReached, naming those that fill it, when no further process may be started."""
    if len(living) < at_most:
        return
    named = sorted(living)[:_NAMED_AT_MOST]
    more = len(living) - len(named)
    tail = f" and {more} more" if more else ""
    raise LimitReached(f"{len(living)} processes run, {at_most} may: {', '.join(named)}{tail}")
