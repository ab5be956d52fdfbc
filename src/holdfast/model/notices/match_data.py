"""The data of notices about matches: single ones, digests, and what the breaker held back. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.model.notices import breaker
from holdfast.model.notices.matches import Held, in_a_row, joined
from holdfast.model.notices.watching import Disabled, MatchDigest, Notified

#: The digest of a release shows lines of this many processes, and only counts of the others.
MOST_SHOWN = 100


def match_data(notified: Notified) -> dict[str, Any]:
    """`output` is what the log has at `offset`; lines apart from it are in `more`, each with its own offset."""
    row = notified.matches[: in_a_row(notified.matches)]
    first = row[0]
    return {
        "pattern": first.pattern,
        "output": "\n".join(match.output for match in row),
        "output_cut": any(match.is_cut for match in row),
        "stream": first.stream,
        "offset": first.offset,
        "end": row[-1].end,
        "count": len(notified.matches),
        "suppressed": notified.suppressed,
        "digest": False,
        "more": [match.to_json() for match in notified.matches[len(row) :]],
    }


def digest_data(digest: MatchDigest) -> dict[str, Any]:
    return held_data(digest.held)


def held_data(held: Held) -> dict[str, Any]:
    """Also for matches that the end of a process takes out of the breaker."""
    first = held.first.to_json()
    return {**first, "count": held.count, "suppressed": held.count, "digest": True, **_first_and_newest(held)}


def disabled_data(disabled: Disabled, patterns: Sequence[str]) -> dict[str, Any]:
    return {
        "strikes": disabled.strikes,
        "suppressed": disabled.suppressed,
        "matches": disabled.matches,
        "reason": disabled.reason,
        "patterns": list(patterns),
    }


def trip_data(rules: breaker.BreakerRules) -> dict[str, Any]:
    return {"limit": rules.limit, "window": rules.window, "silence": rules.silence}


def release_data(released: breaker.Released) -> dict[str, Any]:
    return {"suppressed": released.count, "processes": released.processes, "tripped_at": released.tripped_at}


def owner_data(processes: Mapping[str, Held]) -> dict[str, Any]:
    """The digest of one owner after a release: of all its processes together, and of each."""
    together: Held | None = None
    for held in processes.values():
        together = joined(together, held)
    rows = [
        {"process": process, "count": held.count, **(_first_and_newest(held) if number < MOST_SHOWN else _NO_LINES)}
        for number, (process, held) in enumerate(processes.items())
    ]
    return {**(held_data(together) if together is not None else {}), "processes": rows}


_NO_LINES: dict[str, Any] = {"first": None, "newest": None}


def _first_and_newest(held: Held) -> dict[str, Any]:
    return {"first": held.first.to_json(), "newest": held.newest.to_json()}
