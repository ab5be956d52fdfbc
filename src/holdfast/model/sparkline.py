"""Numbers as a line of blocks."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


_BLOCKS = " ▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int, full: float) -> str:
    """The last `width` values as a line of blocks, the highest for `full` and more; something is more than nothing."""
    top = len(_BLOCKS) - 1
    shares = [min(1.0, value / full) if full > 0 else 0.0 for value in values]
    steps = [max(1 if share > 0 else 0, round(top * share)) for share in shares]
    return "".join(_BLOCKS[step] for step in steps[-width:]).rjust(width)
