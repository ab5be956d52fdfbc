"""Lines of several processes on one screen: each with the name of its process before it, aligned, in a colour."""

from __future__ import annotations

from holdfast.cli import colours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_COLOURS = ("36", "33", "32", "35", "34", "96", "93", "92", "95", "94")
#: Longer names are not aligned.
_WIDEST = 24


class Prefixes:
    """Colours go round in the order of the names; there are none where a terminal has or wants none."""

    def __init__(self, names: Iterable[str]) -> None:
        self._prefixes: dict[str, str] = {}
        listed = list(names)
        self._width = min(_WIDEST, max(map(len, listed), default=0))
        for name in listed:
            self._prefix(name)

    def lines(self, name: str, text: str) -> str:
        """The lines of the text, each with its prefix."""
        prefix = self._prefix(name)
        return "".join([f"{prefix}{line}\n" for line in text.removesuffix("\n").split("\n")])

    def _prefix(self, name: str) -> str:
        if name not in self._prefixes:
            colour = _COLOURS[len(self._prefixes) % len(_COLOURS)]
            self._prefixes[name] = colours.paint(f"{name.ljust(self._width)} |", colour) + " "
        return self._prefixes[name]
