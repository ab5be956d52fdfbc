"""Who comes before whom. Pure: names and what each of them needs, no processes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import TypeAlias

    #: What each one needs, by name.
    Needs: TypeAlias = Mapping[str, Collection[str]]


def closure(needs: Needs, wanted: Iterable[str]) -> list[str]:
    """The wanted ones with all that they need, directly or not, in the order of `needs`."""
    found: set[str] = set()
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += needs.get(name, ())
    return [name for name in needs if name in found]


def waves(needs: Needs) -> list[list[str]]:
    """What can begin at once, then what can begin after that, and so on. What is needed but not there is no obstacle.

    Raises ValueError when some need each other; `find_cycle` tells which.
    """
    left = {name: {other for other in needed if other in needs} for name, needed in needs.items()}
    found: list[list[str]] = []
    while left:
        wave = [name for name, needed in left.items() if not needed]
        if not wave:
            raise ValueError("a cycle")
        found.append(wave)
        done = set(wave)
        left = {name: needed - done for name, needed in left.items() if name not in done}
    return found


def find_cycle(needs: Needs) -> list[str]:
    """Names of which each needs the next, and the last one the first; empty when there is no such ring."""
    try:
        waves(needs)
    except ValueError:
        return _ring(needs)
    return []


def _ring(needs: Needs) -> list[str]:
    """Walk among those that are never done: whoever is met twice closes the ring."""
    stuck = _stuck(needs)
    path: list[str] = []
    name = next(name for name in needs if name in stuck)
    while name not in path:
        path.append(name)
        name = next(other for other in needs[name] if other in stuck)
    return path[path.index(name) :]


def _stuck(needs: Needs) -> set[str]:
    """Those on a ring, or that need one on a ring."""
    stuck = set(needs)
    while done := {name for name in stuck if not stuck.intersection(needs[name])}:
        stuck -= done
    return stuck


def dependents(needs: Needs) -> dict[str, list[str]]:
    """The other way round: who needs each one."""
    found: dict[str, list[str]] = {name: [] for name in needs}
    for name, needed in needs.items():
        for other in dict.fromkeys(needed):
            if other in found:
                found[other].append(name)
    return found
