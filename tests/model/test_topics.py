"""Which patterns stand for which topics."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.topics import PatternTree, matches

_SEGMENTS = st.sampled_from(["a", "b", "c", ""])
_TOPICS = st.lists(_SEGMENTS, min_size=1, max_size=6).map(".".join).filter(bool)
_PATTERNS = st.lists(_SEGMENTS | st.sampled_from(["*", "**"]), min_size=1, max_size=6).map(".".join).filter(bool)


def naive(pattern: list[str], topic: list[str]) -> bool:
    """The rule as it is told, without a thought for speed."""
    if not pattern:
        return not topic
    first, *rest = pattern
    if first == "**":
        return any(naive(rest, topic[skipped:]) for skipped in range(len(topic) + 1))
    return bool(topic) and first in ("*", topic[0]) and naive(rest, topic[1:])


@pytest.mark.parametrize(
    ("pattern", "topic", "fits"),
    [
        ("process.ended", "process.ended", True),
        ("process.*", "process.ended", True),
        ("process.*", "process", False),
        ("process.*", "process.ended.now", False),
        ("process.**", "process", True),
        ("process.**", "process.ended.now", True),
        ("**", "anything.at.all", True),
        ("a.**.z", "a.z", True),
        ("a.**.z", "a.b.c.z", True),
        ("a.**.z", "a.b.c", False),
        ("a.**.m.**.z", "a.1.m.2.3.z", True),
        ("**.ended", "ended", True),
        ("*.**", "a", True),
        ("**.**", "a", True),
        ("*", "**", True),
        ("a*", "ab", False),
    ],
)
def test_patterns(pattern: str, topic: str, fits: bool) -> None:
    assert matches(pattern, topic) is fits


@given(st.lists(_PATTERNS, max_size=8), _TOPICS)
def test_the_tree_finds_what_the_rule_says(patterns: list[str], topic: str) -> None:
    tree: PatternTree[int] = PatternTree()
    for number, pattern in enumerate(patterns):
        tree.add(pattern, number)
    expected = [n for n, pattern in enumerate(patterns) if naive(pattern.split("."), topic.split("."))]
    assert sorted(tree.find(topic)) == expected


@given(st.lists(_PATTERNS, min_size=1, max_size=8), _TOPICS, st.data())
def test_what_is_removed_is_as_if_it_had_never_been(patterns: list[str], topic: str, data: st.DataObject) -> None:
    tree: PatternTree[int] = PatternTree()
    for number, pattern in enumerate(patterns):
        tree.add(pattern, number)
    gone = data.draw(st.sets(st.sampled_from(range(len(patterns)))))
    for number in gone:
        tree.remove(patterns[number], number)
    fitting = {n for n, pattern in enumerate(patterns) if matches(pattern, topic)}
    assert set(tree.find(topic)) == fitting - gone
    for number in set(range(len(patterns))) - gone:
        tree.remove(patterns[number], number)
    assert not tree._root.is_needed


def test_many_wildcards_take_no_longer() -> None:
    assert not matches(".".join(["**", "a"] * 30), ".".join(["a"] * 200 + ["b"]))


@pytest.mark.parametrize("wrong", ["", None, 5])
def test_empty_and_senseless_ones_are_refused(wrong: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        matches(wrong, "a")
    with pytest.raises((ValueError, TypeError)):
        matches("a", wrong)
