"""The lowest line: what just happened or is under way, else the keys of the present view."""

from __future__ import annotations

import time

from textual.content import Content
from textual.widgets import Static

from holdfast.tui import paint

_SHOWN = 8.0


class TextLine(Static):
    """One line of text. It is drawn again only where it differs: a new layout takes longer than the text."""

    def __init__(self, text: str = "", *, id: str | None = None) -> None:
        super().__init__(Content(text), id=id)
        self._shown = text

    def show(self, text: str) -> None:
        if text != self._shown:
            self._shown = text
            self.update(Content(text), layout=False)


class StatusLine(TextLine):
    """A message stays for some seconds; an error until the next key that does something."""

    DEFAULT_CSS = """
    StatusLine { height: 1; background: $panel; color: $foreground 80%; padding: 0 1; }
    StatusLine.error { color: $error; }
    StatusLine.busy { color: $primary; }
    """

    def __init__(self, keys: str) -> None:
        super().__init__(keys)
        self._keys = keys
        self._until = 0.0

    def set_keys(self, keys: str) -> None:
        if keys != self._keys:
            self._keys = keys
            self.tick()

    def say(self, text: str, kind: str = "") -> None:
        """`kind` is busy, error, or empty."""
        self._until = time.monotonic() + (3600.0 if kind == "busy" else _SHOWN)
        self.set_class(kind == "error", "error")
        self.set_class(kind == "busy", "busy")
        self.show(paint.clean(text))

    def tick(self) -> None:
        """Once a second."""
        if self._until and time.monotonic() < self._until:
            return
        self._until = 0.0
        if self.classes:
            self.set_classes([])
        self.show(self._keys)
