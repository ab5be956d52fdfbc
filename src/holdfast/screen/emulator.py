"""The interface of a terminal emulator, and what it shows."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol


class Picture(NamedTuple):
    """What the terminal shows. Rows and columns count from 0."""

    lines: list[str]
    row: int
    col: int
    cursor_visible: bool
    cols: int
    rows: int
    title: str
    alternate: bool
    """Whether the alternate screen is on, as in full-screen programs."""
    modes: list[int]
    """DEC private modes that are set and change what the terminal sends."""

    def to_json(self) -> dict[str, Any]:
        return {
            "lines": self.lines,
            "cursor": {"row": self.row, "col": self.col, "visible": self.cursor_visible},
            "cols": self.cols,
            "rows": self.rows,
            "title": self.title,
            "alternate": self.alternate,
            "modes": self.modes,
        }


class Emulator(Protocol):
    """One terminal. Bytes may come cut anywhere."""

    def feed(self, data: bytes) -> None: ...

    def resize(self, cols: int, rows: int) -> None: ...

    def take_replies(self) -> list[bytes]:
        """What the terminal sent to the program since the last call, in order."""

    @property
    def is_between_sequences(self) -> bool:
        """Whether no escape sequence is incomplete."""

    def picture(self, ansi: bool = False) -> Picture:
        """What it shows; with `ansi`, the lines hold the sequences for colours and styles."""

    def snapshot(self) -> bytes:
        """The whole state."""

    def close(self) -> None: ...


class Unusable(Exception):
    """The emulator cannot do that, or a snapshot is not one of its own."""
