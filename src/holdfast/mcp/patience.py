"""How long a call may last before the client gives it up. No I/O."""

from __future__ import annotations

from holdfast.tools.limits import Limits

#: Many clients give up after 60 s.
USUAL = 50.0
_LONGER = {"claude-code": 180.0}
_SHORTEST, LONGEST = 1.0, 3600.0


def call_limit(client: str | None, wanted: float | None) -> float:
    """Seconds: what was asked for; else what this client is known to wait for; else what most do."""
    if wanted is not None:
        return min(max(wanted, _SHORTEST), LONGEST)
    return _LONGER.get((client or "").strip().lower(), USUAL)


def limits(seconds: float) -> Limits:
    """Of tools whose every answer comes within so many seconds."""
    return Limits(window=seconds, longest_window=seconds, wait=seconds, call=seconds)


def approval_wait(seconds: float) -> float:
    """How long a start waits for a person elsewhere, so that there is time for the command, too."""
    return min(60.0, seconds / 2)
