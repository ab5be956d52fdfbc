"""The order of a dependency graph: names, and for each the names that it needs. No I/O."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import TypeAlias

    #: For each name, the names that it needs.
    Needs: TypeAlias = Mapping[str, Collection[str]]


def closure(needs: Needs, names: Iterable[str]) -> list[str]:
    """The names with all that they need, directly or not, in the order of `needs`."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += needs.get(name, ())
    return [name for name in needs if name in found]


def waves(needs: Needs) -> list[list[str]]:
    """Names that can begin at once, then those that can begin after them, and so on. Unknown names are ignored.

    Raises ValueError when there is a cycle; `find_cycle` returns it.
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
    """Names of which each needs the next, and the last one the first; empty when there is no cycle."""
    try:
        waves(needs)
    except ValueError:
        return _cycle(needs)
    return []


def _cycle(needs: Needs) -> list[str]:
    """Follow names that can never begin; the first that repeats closes the cycle."""
    stuck = _stuck(needs)
    path: list[str] = []
    name = next(name for name in needs if name in stuck)
    while name not in path:
        path.append(name)
        name = next(other for other in needs[name] if other in stuck)
    return path[path.index(name) :]


def _stuck(needs: Needs) -> set[str]:
    """Names on a cycle, or that need one on a cycle."""
    stuck = set(needs)
    while done := {name for name in stuck if not stuck.intersection(needs[name])}:
        stuck -= done
    return stuck


def dependents(needs: Needs) -> dict[str, list[str]]:
    """For each name, the names that need it."""
    found: dict[str, list[str]] = {name: [] for name in needs}
    for name, needed in needs.items():
        for other in dict.fromkeys(needed):
            if other in found:
                found[other].append(name)
    return found
