"""A pattern in output that comes in pieces: found or not, however it is cut.

A pattern is looked for in each line of the text view. A line that is overwritten, by a carriage return or backspaces,
counts in each of its states. A line that is not finished counts as soon as no continuation could undo the match, so
that a prompt is found without an end of line, and `port 80$` is not found in the first half of `port 8080`.
"""

from __future__ import annotations

from typing import Any

from holdfast.errors import BadValue
from holdfast.model.text import TextView

#: As much of one line as a match can span.
WINDOW = 32 << 10
#: A pattern sees of what follows only whether it is the end, a line end, a letter, or none of these.
_CONTINUATIONS = ("", "_", "\x01", "\n")
_OVERWRITES = bytes.maketrans(b"\r\b", b"\n\n")


def compile_pattern(pattern: str, key: str) -> Any:
    """The pattern, ready to search lines. Raises BadValue for one that re2 refuses."""
    import re2  # costs some milliseconds, which only those who use it should pay

    options = re2.Options()
    options.never_nl = True
    options.never_capture = True
    options.log_errors = False
    try:
        re2.compile(pattern, options)
        return re2.compile(f"(?m){pattern}", options)
    except UnicodeEncodeError:
        raise BadValue(f"{key} contains half a character", next=_HINT) from None
    except re2.error as refused:
        raise BadValue(f"{key}: re2 refuses the pattern: {_why(refused)}", next=_HINT) from None


_HINT = "write it in RE2 syntax: no look-around, no back-references"


def _why(refused: Exception) -> str:
    said = refused.args[0] if refused.args else "it makes no sense"
    return " ".join((said.decode(errors="replace") if isinstance(said, bytes) else str(said)).split())[:200]


class Search:
    """Bytes in; whether the pattern has been found. Takes linear time, and constant memory."""

    def __init__(self, compiled: Any) -> None:
        self._search = compiled.search
        self._begin()

    def feed(self, data: bytes) -> bool:
        """Whether it is found in what came up to now, and not before."""
        done = self._view.feed(self._whole_line_ends(data).translate(_OVERWRITES))
        return self._in_finished(done) or self._in_unfinished()

    def skip(self) -> None:
        """Something is missing here: what comes next does not continue what came before."""
        self._begin()

    def _begin(self) -> None:
        self._view = TextView()
        self._returned = False
        #: The unfinished line as far as the view has let go of it, behind one character that came before.
        self._held = "\n"

    def _whole_line_ends(self, data: bytes) -> bytes:
        """A carriage return at the end waits for what follows it: it may be half a line end."""
        if self._returned:
            data = b"\r" + data
        self._returned = data.endswith(b"\r")
        return data[: len(data) - self._returned].replace(b"\r\n", b"\n")

    def _in_finished(self, text: str) -> bool:
        lines, newline, rest = text.rpartition("\n")
        if newline:
            found = self._search(self._held + lines, 1) is not None
            self._held = "\n" + rest
            return found
        self._held += rest
        if len(self._held) > 2 * WINDOW:
            self._held = self._held[-WINDOW - 1 :]
        return False

    def _in_unfinished(self) -> bool:
        line = self._held + self._view.peek()
        if len(line) == 1:
            return False
        return all(self._search(line + continuation, 1) is not None for continuation in _CONTINUATIONS)
