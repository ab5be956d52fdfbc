"""One line of the table: a value, the bound that it must keep, and what we aim at."""

from __future__ import annotations

from typing import Literal, NamedTuple

from bench.series import Series, quantile

Verdict = Literal["aim", "must", "missed", "unbounded"]


class Figure(NamedTuple):
    """`value`, `must` and `aim` share one unit. `series` are what was measured, ours first."""

    name: str
    value: float
    unit: str
    must: float | None = None
    aim: float | None = None
    series: tuple[Series, ...] = ()
    note: str = ""
    is_floor: bool = False
    """`must` and `aim` are lower bounds: larger is better."""

    @property
    def verdict(self) -> Verdict:
        """`unbounded` for a figure without a bound."""
        if self.must is None:
            return "unbounded"
        if self.aim is not None and self._keeps(self.aim):
            return "aim"
        return "must" if self._keeps(self.must) else "missed"

    def _keeps(self, bound: float) -> bool:
        return self.value >= bound if self.is_floor else self.value <= bound


def ratio(name: str, ours: Series, floor: Series, must: float, aim: float, note: str = "") -> Figure:
    """Ours by p50 as a multiple of a floor's."""
    return Figure(name, ours.p50 / floor.p50, "×", must, aim, (ours, floor), note)


def paired(name: str, ours: Series, floor: Series, must: float, aim: float, *, is_rate: bool = False) -> Figure:
    """The median of the ratios of bursts that were taken in pairs, with their p10 and p90.

    The series are seconds each. As a rate, ours is a multiple of the floor's number a second, and larger is better.
    """
    ratios = [mine / theirs for mine, theirs in zip(ours.values, floor.values, strict=True)]
    note = ""
    if is_rate:
        ratios = [1 / value for value in ratios]
        note = f"{1 / ours.p50:.0f} a second to {1 / floor.p50:.0f}; "
    note += f"bursts {quantile(ratios, 0.1):.3g}× to {quantile(ratios, 0.9):.3g}×"
    return Figure(name, quantile(ratios, 0.5), "×", must, aim, (ours, floor), note, is_rate)
