"""What a terminal shows."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.wire.frames import Message


class Screen:
    """What the terminal shows. `lines` has `rows` entries; row and column of the cursor count from 0.

    `at` is how far the output was read. `gap` is None, or the byte before which output was left out, because it
    is no longer kept or was too much at once: what was drawn there may be missing.
    """

    __slots__ = (
        *("id", "lines", "row", "col", "cursor_visible", "cols", "rows", "title", "alternate", "at", "gap", "_json"),
    )

    def __init__(self, fields: Message) -> None:
        self._json = fields
        self.id: str = fields["id"]
        self.lines: list[str] = fields["lines"]
        self.row: int = fields["cursor"]["row"]
        self.col: int = fields["cursor"]["col"]
        self.cursor_visible: bool = fields["cursor"]["visible"]
        self.cols: int = fields["cols"]
        self.rows: int = fields["rows"]
        self.title: str = fields["title"]
        self.alternate: bool = fields["alternate"]
        self.at: int = fields["at"]
        self.gap: int | None = fields["gap"]

    @property
    def text(self) -> str:
        """The lines down to the last that is not empty."""
        return "\n".join(self.lines).rstrip("\n")

    def to_json(self) -> Message:
        return self._json

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Screen {self.id} {self.cols}x{self.rows}>"
