"""What is said of measurements, apart from taking them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from bench import page
from bench.figure import Figure, paired, ratio
from bench.measures import GROUPS, MEASURES, USUAL
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


@pytest.mark.parametrize(("value", "verdict"), [(1.2, "aim"), (0.8, "must"), (0.7, "missed")])
def test_a_rate_is_judged_by_lower_bounds(value: float, verdict: str) -> None:
    figure = Figure("it", value, "×", must=0.75, aim=1.2, is_floor=True)
    assert figure.verdict == verdict
    assert "≥ 0.75×" in table([figure])


def test_a_figure_without_a_bound_has_no_verdict() -> None:
    assert Figure("it", 9.0, "×").verdict == "unbounded"


def test_a_ratio_is_that_of_the_medians() -> None:
    ours, floor = Series("ours", (2.0, 4.0, 90.0)), Series("floor", (1.0, 2.0, 3.0))
    assert ratio("it", ours, floor, must=4.0, aim=2.0).value == 2.0


def test_bursts_are_compared_in_pairs() -> None:
    ours, floor = Series("ours", (0.2, 0.8, 9.0)), Series("floor", (0.1, 0.2, 3.0))
    assert paired("it", ours, floor, must=4.0, aim=2.0).value == pytest.approx(3.0)
    rate = paired("it", ours, floor, must=0.3, aim=1.0, is_rate=True)
    assert rate.value == pytest.approx(1 / 3)
    assert rate.verdict == "must"
    assert rate.note == "1 a second to 5; bursts 0.267× to 0.467×"


@pytest.mark.parametrize(("value", "text"), [(0.0, "0 kB"), (1234.5, "1,234 kB"), (0.12345, "0.123 kB")])
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value, "kB") == text


def test_every_figure_is_in_the_table_the_document_and_the_plot() -> None:
    figures = [
        Figure("slow <start>", 5.0, "×", 4.0, 2.0, (Series("ours", (0.1, 0.2)),)),
        Figure("nothing lost", 0.0, "bytes", 0.0, 0.0),
        Figure("unbounded", 3.0, "×"),
        Figure("rate", 0.0, "×", 0.5, 1.0, is_floor=True),
    ]
    assert all(figure.name in table(figures) for figure in figures)
    assert [figure["verdict"] for figure in document(figures, {}, {})["figures"]] == [
        "missed",
        "aim",
        "unbounded",
        "missed",
    ]
    texts = {node.text for node in ElementTree.fromstring(plot(figures)).iter() if node.text}
    assert {"slow <start>", "nothing lost", "rate"} <= texts


def test_a_table_replaces_only_its_own_in_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = page.PAGE.read_text(encoding="utf-8")
    copy = tmp_path / "page.md"
    copy.write_text(before, encoding="utf-8")
    monkeypatch.setattr(page, "PAGE", copy)
    machine = {"python": "3", "kernel": "6", "cores": 2, "architecture": "x"}
    page.update("table", "| one |", machine)
    page.update("table", "| two |", machine)
    head, _, rest = before.partition(page.BEGIN["table"])
    tail = rest.partition(page.END)[2]
    after = copy.read_text(encoding="utf-8")
    assert after.startswith(head) and after.endswith(tail)
    assert "| two |" in after and "| one |" not in after


def test_groups_are_made_of_measures_and_have_a_table_in_the_page() -> None:
    for name, members in GROUPS.items():
        assert set(members) <= set(MEASURES)
        assert page.PAGE.read_text(encoding="utf-8").count(page.BEGIN[name]) == 1
    assert set(USUAL) | set(GROUPS["dashboard"]) == set(MEASURES)
