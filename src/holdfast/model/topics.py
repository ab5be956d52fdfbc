"""Topics and patterns: which subscriptions a topic reaches, found without looking at those that it does not.

A topic is a sequence of segments joined by dots. In a pattern `*` matches one segment and `**` any number of them,
none included, anywhere in the pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

Leaf = TypeVar("Leaf")

ONE = "*"
ANY = "**"


def segments(text: str, what: str) -> list[str]:
    """The parts of a topic or pattern. Raises ValueError when it is empty, TypeError when it is no text."""
    if not isinstance(text, str):
        raise TypeError(f"a {what} is a str, not {type(text).__name__}")
    if not text:
        raise ValueError(f"the {what} is empty")
    return text.split(".")


def matches(pattern: str, topic: str) -> bool:
    """Whether the pattern matches the topic."""
    tree: PatternTree[bool] = PatternTree()
    tree.add(pattern, True)
    return bool(tree.find(topic))


class PatternTree(Generic[Leaf]):
    """Patterns by their segments, with something at the end of each."""

    def __init__(self) -> None:
        self._root: _Node[Leaf] = _Node(repeats=False)

    def add(self, pattern: str, leaf: Leaf) -> None:
        node = self._root
        for segment in segments(pattern, "pattern"):
            node = node.grow(segment)
        node.leaves[leaf] = None

    def remove(self, pattern: str, leaf: Leaf) -> None:
        """Take away what was added, and the branches that lead to nothing else."""
        path = [self._root]
        names = segments(pattern, "pattern")
        for name in names:
            path.append(path[-1].below[name])
        del path[-1].leaves[leaf]
        for node, name in zip(reversed(path[:-1]), reversed(names), strict=True):
            if node.below[name].is_needed:
                break
            del node.below[name]

    def find(self, topic: str) -> list[Leaf]:
        """The leaves of all patterns that match the topic, each once, in no particular order."""
        reached = dict.fromkeys(_here(self._root))
        for segment in segments(topic, "topic"):
            reached = dict.fromkeys(after for node in reached for after in node.steps(segment))
        return list(dict.fromkeys(leaf for node in reached for leaf in node.leaves))


class _Node(Generic[Leaf]):
    """A place in the tree. Behind `**` it `repeats`: any segment leads to where one is."""

    __slots__ = ("below", "leaves", "repeats")

    def __init__(self, repeats: bool) -> None:
        self.below: dict[str, _Node[Leaf]] = {}
        self.leaves: dict[Leaf, None] = {}
        self.repeats = repeats

    @property
    def is_needed(self) -> bool:
        return bool(self.below or self.leaves)

    def grow(self, segment: str) -> _Node[Leaf]:
        if segment not in self.below:
            self.below[segment] = _Node(repeats=segment == ANY)
        return self.below[segment]

    def steps(self, segment: str) -> Iterator[_Node[Leaf]]:
        """Every place to which one more segment leads from here."""
        if self.repeats:
            yield from _here(self)
        if segment not in (ONE, ANY) and (named := self.below.get(segment)) is not None:
            yield from _here(named)
        if (one := self.below.get(ONE)) is not None:
            yield from _here(one)


def _here(node: _Node[Leaf]) -> Iterator[_Node[Leaf]]:
    """The place itself, and those that `**` leads to without any segment."""
    at: _Node[Leaf] | None = node
    while at is not None:
        yield at
        at = at.below.get(ANY)
