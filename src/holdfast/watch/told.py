"""What the other side was told and still knows: both sides keep the same, since both see the same in the same order."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")

_MOST = 512


class Told(Generic[T]):
    def __init__(self) -> None:
        self._known: OrderedDict[int, T] = OrderedDict()

    def __contains__(self, number: int) -> bool:
        return number in self._known

    def use(self, number: int, value: T | None) -> T:
        """What belongs to this number: `value`, or what was told before. What was not used for long is forgotten."""
        if value is not None:
            self._known[number] = value
        self._known.move_to_end(number)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return self._known[number]
