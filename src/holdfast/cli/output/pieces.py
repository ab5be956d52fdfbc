"""Print pieces of output: as text, as bytes, or as one JSON object per line."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from binascii import b2a_base64

from holdfast.cli import console
from holdfast.model.text import TextView, with_resets, without_sequences

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.link import Output

#: Seconds between two draws of a changing line.
_REDRAW = 0.1


class OutputPieces(ABC):
    """Prints pieces of output."""

    #: Whether the next `rest` prints something.
    has_more = False
    #: Whether it prints text, which begins at the start of a line.
    by_line = True

    @abstractmethod
    def show(self, piece: Output) -> None:
        """The next piece."""

    def rest(self) -> None:
        """Called when no output came for a moment."""

    def skip(self) -> None:
        """Called where output is missing."""

    def close(self, whole: bool = False) -> None:
        """Called at the end. With `whole`, an unfinished line is not printed."""


class RawPieces(OutputPieces):
    """The exact bytes."""

    by_line = False

    def show(self, piece: Output) -> None:
        console.write(1, piece.data)


class TextPieces(OutputPieces):
    """Line by line. An incomplete line is printed if no more output comes for a moment.

    On a terminal it is drawn again in place when it changes. Elsewhere a line that is being overwritten, such as a
    progress bar, is printed when it is complete. With `colours`, complete lines have theirs.
    """

    def __init__(self, in_place: bool = False, colours: bool = False) -> None:
        self._view = TextView(colours)
        self._colours = colours
        self._in_place = in_place
        self._shown = ""
        self._drawn_at = 0.0

    @property
    def has_more(self) -> bool:  # type: ignore[override]
        return (self._in_place or not self._view.is_redrawn) and self._peek() != self._shown

    def show(self, piece: Output) -> None:
        self._write(self._view.feed(piece.data))
        if self._in_place and time.monotonic() - self._drawn_at > _REDRAW:
            self.rest()

    def rest(self) -> None:
        self._drawn_at = time.monotonic()
        if self.has_more:
            now = self._peek()
            sys.stdout.write(self._beyond(fitted(now) if self._in_place else now))
            self._shown = now
            sys.stdout.flush()

    def skip(self) -> None:
        unfinished = self._view.close()
        self._write(f"{unfinished}\n" if unfinished else "")
        self._view = TextView(self._colours)

    def close(self, whole: bool = False) -> None:
        unfinished = self._view.close()
        if not whole:
            self._write(unfinished)

    def _peek(self) -> str:
        """The unfinished line; without colours where it is drawn in place, because its width is measured."""
        text = self._view.peek()
        return without_sequences(text) if self._colours and self._in_place else text

    def _write(self, text: str) -> None:
        if text:
            sys.stdout.write(self._beyond(with_resets(text)))
            self._shown = ""
            sys.stdout.flush()

    def _beyond(self, text: str) -> str:
        """The part of the text that is not shown yet; all of it, in place or on a new line, if it was overwritten."""
        if text.startswith(self._shown) and not (self._in_place and fitted(self._shown) != self._shown):
            return text[len(self._shown) :]
        if not self._in_place:
            return f"\n{text}"
        height = fitted(self._shown).count("\n")
        return (f"\x1b[{height}A" if height else "") + f"\r\x1b[J{text}"


def fitted(text: str) -> str:
    """The last lines, cut so that each fits on one row and all fit on the terminal."""
    cols, rows = console.terminal_size()
    return "\n".join([console.shortened(line, cols - 1) for line in text.split("\n")[-max(1, rows - 1) :]])


class JsonPieces(OutputPieces):
    """One object per line: stream, offset (of the output that completed it), and text, or data in base64."""

    def __init__(self, raw: bool) -> None:
        self._raw = raw
        self.by_line = not raw
        self._views: dict[str, TextView] = {}
        self._ends: dict[str, int] = {}

    def show(self, piece: Output) -> None:
        self._ends[piece.stream] = piece.end
        if self._raw:
            self._out(piece.stream, piece.offset, "data", b2a_base64(piece.data, newline=False).decode())
            return
        view = self._views.setdefault(piece.stream, TextView())
        self._out(piece.stream, piece.offset, "text", view.feed(piece.data))

    def close(self, whole: bool = False) -> None:
        for stream, view in self._views.items():
            self._out(stream, self._ends[stream], "text", view.close())

    def _out(self, stream: str, offset: int, key: str, value: str) -> None:
        if value:
            console.out_json({"stream": stream, "offset": offset, key: value})
            sys.stdout.flush()
