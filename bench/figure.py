"""One line of the table: a value, what it must be at most, and what we aim at."""

from __future__ import annotations

from typing import Literal, NamedTuple

from bench.series import Series

Verdict = Literal["aim", "must", "missed", "unbounded"]


class Figure(NamedTuple):
    """`value`, `must` and `aim` share one unit; smaller is better. `series` are what was measured, ours first."""

    name: str
    value: float
    unit: str
    must: float | None = None
    aim: float | None = None
    series: tuple[Series, ...] = ()
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """`unbounded` for a figure without a bound."""
        if self.must is None:
            return "unbounded"
        if self.aim is not None and self.value <= self.aim:
            return "aim"
        return "must" if self.value <= self.must else "missed"


def ratio(name: str, ours: Series, floor: Series, must: float, aim: float, note: str = "") -> Figure:
    """Ours by p50 as a multiple of a floor's."""
    return Figure(name, ours.p50 / floor.p50, "×", must, aim, (ours, floor), note)
