"""The order of a dependency graph."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.project import order

NAMES = [f"p{n}" for n in range(12)]


@st.composite
def acyclic(draw: st.DrawFn) -> dict[str, list[str]]:
    """Names that need only names before them, in an order that does not show it."""
    names = NAMES[: draw(st.integers(0, len(NAMES)))]
    needs = {name: draw(st.lists(st.sampled_from(names[:at]))) if at else [] for at, name in enumerate(names)}
    return {name: needs[name] for name in draw(st.permutations(names))}


any_needs = st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from([*NAMES, "unknown"])))


@given(acyclic())
def test_each_name_comes_once_and_after_its_needs(needs: dict[str, list[str]]) -> None:
    seen: set[str] = set()
    for wave in order.waves(needs):
        assert wave
        assert not seen.intersection(wave)
        assert all(seen.issuperset(needs[name]) for name in wave)
        seen.update(wave)
    assert seen == needs.keys()


@given(acyclic())
def test_no_name_comes_later_than_necessary(needs: dict[str, list[str]]) -> None:
    waves = order.waves(needs)
    for earlier, wave in itertools.pairwise(waves):
        assert all(set(earlier).intersection(needs[name]) for name in wave)


@given(any_needs)
def test_there_is_an_order_or_a_cycle(needs: dict[str, list[str]]) -> None:
    cycle = order.find_cycle(needs)
    if not cycle:
        order.waves(needs)
        return
    assert len(set(cycle)) == len(cycle)
    assert all(after in needs[name] for name, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    with pytest.raises(ValueError):
        order.waves(needs)


@given(acyclic(), st.data())
def test_a_part_comes_with_all_that_it_needs_and_no_more(needs: dict[str, list[str]], data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(list(needs)))) if needs else []
    part = order.closure(needs, names)
    assert set(names) <= set(part)
    assert all(other in part for name in part for other in needs[name])
    needed = {other for name in part for other in needs[name]}
    assert set(part) <= set(names) | needed


@given(any_needs)
def test_dependents_are_the_other_way_round(needs: dict[str, list[str]]) -> None:
    back = order.dependents(needs)
    assert back.keys() == needs.keys()
    pairs = {(name, other) for name in needs for other in needs[name] if other in needs}
    assert {(name, other) for other in back for name in back[other]} == pairs


def test_a_cycle_is_listed_in_order() -> None:
    assert order.find_cycle({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a"]}) == ["b", "c"]
    assert order.find_cycle({"a": ["a"]}) == ["a"]
