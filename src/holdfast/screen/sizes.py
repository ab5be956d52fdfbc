"""Which size a terminal had where in its output. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Resize(NamedTuple):
    """From byte `offset` on, the terminal has this size."""

    offset: int
    cols: int
    rows: int


def size_at(resizes: Iterable[Resize], offset: int) -> tuple[int, int] | None:
    """The last size that was given at or before this byte; None when none was."""
    found = [resize for resize in resizes if resize.offset <= offset]
    return (found[-1].cols, found[-1].rows) if found else None


def next_cut(offset: int, end: int, *cuts: Iterable[int]) -> int:
    """Where output from `offset` on has to be cut: at the first of these places behind it, `end` at the latest."""
    return min((cut for some in cuts for cut in some if offset < cut < end), default=end)
