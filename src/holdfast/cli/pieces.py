"""Pieces of output on their way to stdout: as text, as bytes, or as a JSON object a line."""

from __future__ import annotations

import sys
from binascii import b2a_base64

from holdfast.cli import console
from holdfast.model.text import TextView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.conversation import Output


class Pieces:
    """Shows pieces of output."""

    #: Whether something waits to be shown at the next `rest`.
    has_more = False
    #: Whether it is text, which begins with a line.
    by_line = True

    def show(self, piece: Output) -> None:
        raise NotImplementedError

    def rest(self) -> None:
        """To be called when nothing came for a moment."""

    def close(self) -> None:
        """To be called at the end."""


class RawPieces(Pieces):
    """The exact bytes."""

    by_line = False

    def show(self, piece: Output) -> None:
        console.write(1, piece.data)


class TextPieces(Pieces):
    """Line by line; a line that is not complete when nothing more comes for a moment is shown as far as it goes."""

    def __init__(self) -> None:
        self._view = TextView()
        self._shown = ""

    @property
    def has_more(self) -> bool:  # type: ignore[override]
        return self._view.peek() != self._shown

    def show(self, piece: Output) -> None:
        self._write(self._view.feed(piece.data))

    def rest(self) -> None:
        now = self._view.peek()
        if now != self._shown:
            sys.stdout.write(self._beyond(now))
            self._shown = now
            sys.stdout.flush()

    def close(self) -> None:
        self._write(self._view.close())

    def _write(self, text: str) -> None:
        if text:
            sys.stdout.write(self._beyond(text))
            self._shown = ""
            sys.stdout.flush()

    def _beyond(self, text: str) -> str:
        """What of the text is not on the screen yet; on a new line, when what is there was overwritten."""
        return text[len(self._shown) :] if text.startswith(self._shown) else f"\n{text}"


class JsonPieces(Pieces):
    """One object a line: stream, offset (of the output that completed it), and text, or data in base64."""

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

    def close(self) -> None:
        for stream, view in self._views.items():
            self._out(stream, self._ends[stream], "text", view.close())

    def _out(self, stream: str, offset: int, key: str, value: str) -> None:
        if value:
            console.out_json({"stream": stream, "offset": offset, key: value})
            sys.stdout.flush()
