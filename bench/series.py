"""Repeated measurements and what is said of them. Pure, but for `interleave`, which runs what it is given."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

Sample = Callable[[], float]


class Series(NamedTuple):
    """The same thing measured several times."""

    name: str
    values: tuple[float, ...]

    @property
    def p50(self) -> float:
        return quantile(self.values, 0.5)

    @property
    def p90(self) -> float:
        return quantile(self.values, 0.9)

    @property
    def spread(self) -> float:
        """The distance from p10 to p90, as a share of p50."""
        return (self.p90 - quantile(self.values, 0.1)) / self.p50 if self.p50 else 0.0


def quantile(values: Sequence[float], share: float) -> float:
    """Linear between the two nearest values."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def interleave(rounds: int, samples: dict[str, Sample], pause: float = 0.0) -> dict[str, Series]:
    """Take each sample once a round, in turning order, so that all of them see the same moods of the machine.

    Nothing happens for `pause` seconds before each of them.
    """
    names = list(samples)
    taken: dict[str, list[float]] = {name: [] for name in names}
    for round_ in range(rounds):
        first = round_ % len(names)
        for name in names[first:] + names[:first]:
            time.sleep(pause)
            taken[name].append(samples[name]())
    return {name: Series(name, tuple(values)) for name, values in taken.items()}
