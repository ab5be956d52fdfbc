"""The name of a process before each line of its output."""

from __future__ import annotations

from holdfast.cli import colours, console

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_COLOURS = ("36", "33", "32", "35", "34", "96", "93", "92", "95", "94")
#: Longer names are not aligned.
_WIDEST = 24


class Prefixes:
    """Aligned, and each name in its colour. A name that comes later is taken in; the following lines fit its width."""

    def __init__(self, names: Iterable[str]) -> None:
        self._colours: dict[str, str] = {}
        self._width = 0
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        if name not in self._colours:
            self._colours[name] = _COLOURS[len(self._colours) % len(_COLOURS)]
            self._width = max(self._width, min(_WIDEST, len(console.visible(name))))

    def lines(self, name: str, text: str) -> str:
        """The lines of the text, each with its prefix."""
        self.add(name)
        prefix = colours.paint(f"{console.visible(name).ljust(self._width)} |", self._colours[name]) + " "
        return "".join([f"{prefix}{line}\n" for line in text.removesuffix("\n").split("\n")])
