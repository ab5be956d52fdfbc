"""The `data` of notifications that a watch makes, but for `command` and `name`. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.model import breaker
from holdfast.model.matches import Held, in_a_row, joined
from holdfast.model.watching import Digest, Disabled, Told

#: Of how many processes the digest of a release shows lines; of the others it has the counts.
MOST_SHOWN = 100


def of_told(told: Told) -> dict[str, Any]:
    """`output` is what the log has at `offset`; lines that lie apart from it are in `more`, each with its own place."""
    row = told.matches[: in_a_row(told.matches)]
    first = row[0]
    return {
        "pattern": first.pattern,
        "output": "\n".join(match.output for match in row),
        "output_cut": any(match.is_cut for match in row),
        "stream": first.stream,
        "offset": first.offset,
        "end": row[-1].end,
        "count": len(told.matches),
        "suppressed": told.suppressed,
        "digest": False,
        "more": [match.to_json() for match in told.matches[len(row) :]],
    }


def of_digest(digest: Digest) -> dict[str, Any]:
    return of_held(digest.held)


def of_held(held: Held) -> dict[str, Any]:
    """Also of what the end of a process takes out of the breaker."""
    first = held.first.to_json()
    return {**first, "count": held.count, "suppressed": held.count, "digest": True, **_lines(held)}


def of_disabled(disabled: Disabled, patterns: Sequence[str]) -> dict[str, Any]:
    return {
        "strikes": disabled.strikes,
        "suppressed": disabled.suppressed,
        "matches": disabled.matches,
        "reason": disabled.reason,
        "patterns": list(patterns),
    }


def of_trip(rules: breaker.Rules) -> dict[str, Any]:
    return {"limit": rules.limit, "window": rules.window, "silence": rules.silence}


def of_release(released: breaker.Released) -> dict[str, Any]:
    return {"suppressed": released.count, "processes": released.processes, "tripped_at": released.tripped_at}


def of_owner(processes: Mapping[str, Held]) -> dict[str, Any]:
    """The digest of one owner after a release: of all its processes together, and of each."""
    together: Held | None = None
    for held in processes.values():
        together = joined(together, held)
    rows = [
        {"process": process, "count": held.count, **(_lines(held) if number < MOST_SHOWN else _NO_LINES)}
        for number, (process, held) in enumerate(processes.items())
    ]
    return {**(of_held(together) if together is not None else {}), "processes": rows}


_NO_LINES: dict[str, Any] = {"first": None, "newest": None}


def _lines(held: Held) -> dict[str, Any]:
    return {"first": held.first.to_json(), "newest": held.newest.to_json()}
