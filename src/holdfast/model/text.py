"""The text view of output: what a person would have read, without what only a terminal understands.

Escape sequences and control characters are gone, line ends are `\\n`, a backspace takes a character back, and a line
that was overwritten by carriage returns shows its first and last state with a count:
`0% … 100% done [10000 updates]`. Lines that are drawn again further up, as by several progress bars at once, are shown
as they were first and, once they rest, as they are at last. The bytes may come cut anywhere: the text is the same.
"""

from __future__ import annotations

import codecs

from holdfast.model.redrawn import DOWN, LONGEST_HELD, UP, Lines

__all__ = ["LONGEST_HELD", "TextView", "without_sequences"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

#: What makes bytes more than plain text: C0 but tab and newline, DEL, and the lead byte of C1 in UTF-8.
_SPECIAL = bytes(n for n in range(32) if n not in (9, 10)) + b"\x7f\xc2"

#: A control string (OSC, DCS, SOS, PM, APC) ends at its terminator, and at a line end: a stray introducer must not
#: hide the rest of the log.
_STRING = r"[^\x07\x18\x1a\x1b\x80-\x9f\n]*"
_CSI = r"[0-?]*[ -/]*"
#: One set of first characters, so that plain text is skipped at speed; then what belongs to each.
_SEQUENCE = (
    r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]"
    rf"(?:(?<=\x1b)(?:\[{_CSI}[@-~]?|[\]PX^_]{_STRING}|[ -/]*[0-~]?)"
    rf"|(?<=\x9b){_CSI}[@-~]?|(?<=[\x90\x98\x9d-\x9f]){_STRING})?"
)
_UNFINISHED = rf"(?:\x1b\[|\x9b){_CSI}|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]){_STRING}|\x1b[ -/]*"
#: What moves the cursor to another line, or to the start of its own; erasing the whole line counts as that.
_MOVE = r"(?:\x1b\[|\x9b)(\d{0,4})([ABDEFGK])"
#: So far to the left there is nothing left of it.
_FAR = 100
_HIGHEST = 200
_INTRODUCERS = "\x1b\x90\x98\x9b\x9d\x9e\x9f"

_compiled: tuple[re.Pattern[str], ...] | None = None


class TextView:
    """Bytes in, text out. Lines come out when they are complete; `close` gives what is left."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._cut = ""
        self._lines = Lines()

    def feed(self, data: bytes) -> str:
        """The text of the lines that `data` completes."""
        data = data.replace(b"\r\n", b"\n")
        if self._is_plain(data):
            return self._lines.add_plain(self._decoder.decode(data))
        return self._lines.add(self._strip(self._decoder.decode(data)))

    def close(self) -> str:
        """The unfinished last line; a character that was cut off is one U+FFFD."""
        tail = self._decoder.decode(b"", True)
        shown = self._lines.add_plain(self._strip(tail) if self._cut else tail)
        self._cut = ""
        return shown + self._lines.end()

    def peek(self) -> str:
        """The unfinished line, or lines, as they stand now. They may still change."""
        return self._lines.shown()

    @property
    def is_redrawn(self) -> bool:
        """Whether what is unfinished has been overwritten already, and so will be again."""
        return self._lines.is_redrawn

    def _is_plain(self, data: bytes) -> bool:
        if self._cut or len(data.translate(None, _SPECIAL)) != len(data):
            return False
        return self._decoder.getstate()[0] != b"\xc2"

    def _strip(self, text: str) -> str:
        """The text without sequences; one that is not complete is kept for the next time."""
        sequences, unfinished, moves = _patterns()
        text = self._cut + text
        self._cut = ""
        at = max(text.rfind(introducer) for introducer in _INTRODUCERS)
        if at >= 0 and (found := unfinished.fullmatch(text, at)):
            self._cut = _essence(found[0])
            text = text[:at]
        return sequences.sub(_as_move if moves.search(text) else "", text)


def without_sequences(text: str) -> str:
    """The text without escape sequences and control characters but tab, `\\b`, `\\n` and `\\r`.

    What moves the cursor is gone as well. One that is not complete is gone as far as it reaches.
    """
    return _patterns()[0].sub("", text)


def _essence(sequence: str) -> str:
    """As much of an unfinished sequence as decides how it goes on, however long it is."""
    head = sequence[: 2 if sequence[0] == "\x1b" and sequence[1:2] in tuple("[]PX^_") else 1]
    if head[-1] in "]PX^_\x90\x98\x9d\x9e\x9f" or sequence == head:
        return head
    if " " <= sequence[-1] <= "/":
        return head + " "
    how_far = sequence[len(head) :]
    return sequence if len(how_far) <= 4 and how_far.isdecimal() else head + ";"


def _as_move(sequence: re.Match[str]) -> str:
    """What is left of a sequence: how it moves the cursor, as far as lines are concerned."""
    found = _patterns()[2].fullmatch(sequence[0])
    if found is None:
        return ""
    count, kind = int(found[1] or 0), found[2]
    if kind in "AF":
        return UP * min(count or 1, _HIGHEST)
    if kind in "BE":
        return DOWN * min(count or 1, _HIGHEST)
    returns = {"G": count <= 1, "D": count >= _FAR, "K": count == 2}
    return "\r" if returns[kind] else ""


def _patterns() -> tuple[re.Pattern[str], ...]:
    global _compiled
    if _compiled is None:
        import re

        _compiled = re.compile(_SEQUENCE), re.compile(_UNFINISHED), re.compile(_MOVE, re.ASCII)
    return _compiled
