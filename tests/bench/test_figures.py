"""What is said of measurements, apart from taking them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from bench.figure import Figure, ratio
from bench.plot import plot
from bench.report import document, number, table
from bench.series import Series, interleave, quantile


def test_a_quantile_lies_between_its_neighbours() -> None:
    assert quantile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.5
    assert quantile([7.0], 0.9) == 7.0


def test_samples_take_turns() -> None:
    order: list[str] = []

    def sample(name: str) -> float:
        order.append(name)
        return 1.0

    interleave(2, {"a": lambda: sample("a"), "b": lambda: sample("b")})
    assert order == ["a", "b", "b", "a"]


@pytest.mark.parametrize(("value", "verdict"), [(2.0, "aim"), (3.0, "must"), (4.1, "missed")])
def test_a_figure_is_judged_by_its_bounds(value: float, verdict: str) -> None:
    assert Figure("it", value, "×", must=4.0, aim=2.0).verdict == verdict


def test_a_figure_without_a_bound_has_no_verdict() -> None:
    assert Figure("it", 9.0, "×").verdict == "unbounded"


def test_a_ratio_is_that_of_the_medians() -> None:
    ours, floor = Series("ours", (2.0, 4.0, 90.0)), Series("floor", (1.0, 2.0, 3.0))
    assert ratio("it", ours, floor, must=4.0, aim=2.0).value == 2.0


@pytest.mark.parametrize(("value", "text"), [(0.0, "0 kB"), (1234.5, "1,234 kB"), (0.12345, "0.123 kB")])
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value, "kB") == text


def test_every_figure_is_in_the_table_the_document_and_the_plot() -> None:
    figures = [
        Figure("slow <start>", 5.0, "×", 4.0, 2.0, (Series("ours", (0.1, 0.2)),)),
        Figure("nothing lost", 0.0, "bytes", 0.0, 0.0),
        Figure("unbounded", 3.0, "×"),
    ]
    assert all(figure.name in table(figures) for figure in figures)
    assert [figure["verdict"] for figure in document(figures, {}, {})["figures"]] == ["missed", "aim", "unbounded"]
    texts = {node.text for node in ElementTree.fromstring(plot(figures)).iter() if node.text}
    assert {"slow <start>", "nothing lost"} <= texts
