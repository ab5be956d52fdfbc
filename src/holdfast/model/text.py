"""The text view of output: as a user would have read it, without terminal control sequences.

Escape sequences and control characters are removed, line ends are `\\n`, a backspace removes a character, and a line
that was overwritten by carriage returns shows its first and last state with a count:
`0% … 100% done [10000 updates]`. Lines that are redrawn further up, as by several progress bars at once, are shown
in their first and, once they no longer change, in their last state. The text does not depend on where the input is
cut into pieces. Colours (SGR sequences) can be kept.
"""

from __future__ import annotations

import codecs

__all__ = ["LONGEST_HELD", "TextView", "with_resets", "without_sequences"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

#: A line is held until it is complete, since it may still be overwritten; of a longer one this much is returned.
LONGEST_HELD = 1 << 14
#: Stand for a cursor movement one line up, or down.
UP, DOWN = "\x0b", "\x0c"

#: The most redrawn lines that are held.
_HIGHEST = 200


class RedrawnLines:
    """The current line; after the cursor has moved up, the lines from there down.

    Such a block is held from the first move up until there is output below it.
    """

    def __init__(self) -> None:
        self._line = RedrawnLine()
        self._block: list[RedrawnLine] = []
        self._row = 0

    @property
    def is_redrawn(self) -> bool:
        return bool(self._block) or self._line.is_redrawn

    def add_plain(self, text: str) -> str:
        """The same as `add`, for text without moves."""
        return self._line.add_plain(text) if not self._block else self.add(text)

    def add(self, text: str) -> str:
        if not self._block and UP not in text:
            return self._line.add(text.replace(DOWN, "") if DOWN in text else text)
        return "".join([self._add_piece(piece) for piece in _pieces(text)])

    def end(self) -> str:
        shown = self.shown()
        self._line, self._block = RedrawnLine(), []
        return shown

    def shown(self) -> str:
        if not self._block:
            return self._line.shown()
        return "\n".join([line.shown() for line in self._block])

    def _add_piece(self, piece: str) -> str:
        match piece[0]:
            case "\x0b":
                return self._go_up(len(piece))
            case "\x0c":
                return self._go_down(len(piece))
            case "\n":
                return "".join([self._new_line() for _ in piece])
            case _:
                return self._here.add(piece)

    @property
    def _here(self) -> RedrawnLine:
        return self._block[self._row] if self._block else self._line

    def _go_up(self, count: int) -> str:
        if not self._block:
            self._block, self._row = [self._line], 0
        missing = min(max(0, count - self._row), _HIGHEST - len(self._block))
        self._block = [*(RedrawnLine() for _ in range(missing)), *self._block]
        self._row = max(0, self._row - count)
        self._here.go_back()
        return ""

    def _go_down(self, count: int) -> str:
        if self._block:
            self._row = min(self._row + count, len(self._block) - 1)
            self._here.go_back()
        return ""

    def _new_line(self) -> str:
        if not self._block:
            return self._line.end() + "\n"
        self._row += 1
        if self._row < len(self._block):
            self._here.go_back()
            return ""
        return self.end() + "\n"


def _pieces(text: str) -> list[str]:
    """The text cut into runs of line ends, of moves, and of other text."""
    import re

    return re.findall("\n+|\x0b+|\x0c+|[^\n\x0b\x0c]+", text)


class RedrawnLine:
    """The current line: its first and last states, their number, and its present text."""

    def __init__(self) -> None:
        self._clear()

    def add_plain(self, text: str) -> str:
        """The same as `add`, for text without `\\r` and `\\b`."""
        done = text.rfind("\n") + 1
        if not done:
            return self._append(text)
        first = text.find("\n")
        return self._append(text[:first]) + self.end() + text[first:done] + self._append(text[done:])

    def add(self, text: str) -> str:
        if "\r" not in text and "\b" not in text:
            return self.add_plain(text)
        *done, rest = text.split("\n")
        return "".join([self._write(line) + self.end() + "\n" for line in done]) + self._write(rest)

    def end(self) -> str:
        shown = self.shown()
        self._clear()
        return shown

    def shown(self) -> str:
        if not self._states:
            return self._now
        now = _trimmed(self._now)
        return self._summary(now or self._last, self._states + bool(now))

    @property
    def is_redrawn(self) -> bool:
        return bool(self._states) or self._returned

    def go_back(self) -> None:
        """The next text overwrites the line."""
        self._returned = True

    def _clear(self) -> None:
        self._now = ""
        self._first = self._last = ""
        self._states = 0
        self._returned = False

    def _summary(self, last: str, states: int) -> str:
        if states == 1:
            return last
        first = "" if without_sequences(last) == without_sequences(self._first) else f"{self._first} … "
        return f"{first}{last} [{states} updates]"

    def _write(self, line: str) -> str:
        *over, rest = line.split("\r")
        out = []
        for state in over:
            out.append(self._type(state))
            self._returned = True
        out.append(self._type(rest))
        return "".join(out)

    def _type(self, text: str) -> str:
        head, *strokes = text.split("\b")
        out = [self._append(head)]
        back = 0
        for stroke in strokes:
            back += 1
            if stroke:
                self._back(back)
                out.append(self._append(stroke))
                back = 0
        self._back(back)
        return "".join(out)

    def _back(self, steps: int) -> None:
        if steps and not self._returned:
            self._now = _shortened(self._now, steps) if _ESCAPE in self._now else self._now[:-steps]

    def _append(self, text: str) -> str:
        if not text:
            return ""
        if self._returned:
            self._overwrite()
        self._now += text
        return self._flush() if len(self._now) > LONGEST_HELD else ""

    def _overwrite(self) -> None:
        self._returned = False
        state, self._now = _trimmed(self._now), ""
        if state:
            self._states += 1
            self._first = self._first or state
            self._last = state

    def _flush(self) -> str:
        """Return the beginning of a line that is too long to be held."""
        size = (len(self._now) - 1) // LONGEST_HELD * LONGEST_HELD
        if (at := self._now.rfind(_ESCAPE, 0, size)) > 0 and "m" not in self._now[at:size]:
            size = at  # no cut within a colour
        before = self._summary(self._last, self._states) + " … " if self._states else ""
        out, rest = before + self._now[:size], self._now[size:]
        self._clear()
        self._now = rest
        return out


def _trimmed(text: str) -> str:
    """Without blanks at the end; nothing of a text that has only colours."""
    text = text.rstrip()
    return text if _ESCAPE not in text or without_sequences(text).strip() else ""


def _shortened(text: str, steps: int) -> str:
    """Without its last `steps` characters. Colours stay."""
    import re

    parts = re.split(f"({_COLOUR})", text)
    for at in range(len(parts) - 1, -1, -2):
        cut = min(steps, len(parts[at]))
        parts[at], steps = parts[at][: len(parts[at]) - cut], steps - cut
    return "".join(parts)


def with_resets(text: str) -> str:
    """The text with a reset at the end of each line that has colours."""
    if _ESCAPE not in text:
        return text
    return "\n".join([f"{line}{_RESET}" if _ESCAPE in line else line for line in text.split("\n")])


_ESCAPE = "\x1b"
_RESET = "\x1b[0m"
#: A colour or another property of text (SGR), of a length that a terminal could want.
_COLOUR = r"\x1b\[[0-9;:]{0,60}m"
#: Bytes that are not plain text: C0 but tab and newline, DEL, and the lead byte of C1 in UTF-8.
_SPECIAL = bytes(n for n in range(32) if n not in (9, 10)) + b"\x7f\xc2"

#: A control string (OSC, DCS, SOS, PM, APC) ends at its terminator, and at a line end: a stray introducer must not
#: hide the rest of the log.
_STRING = r"[^\x07\x18\x1a\x1b\x80-\x9f\n]*"
_CSI = r"[0-?]*[ -/]*"
#: One set of first characters, so that plain text is skipped fast; then the rest of each sequence.
_SEQUENCE = (
    r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]"
    rf"(?:(?<=\x1b)(?:\[{_CSI}[@-~]?|[\]PX^_]{_STRING}|[ -/]*[0-~]?)"
    rf"|(?<=\x9b){_CSI}[@-~]?|(?<=[\x90\x98\x9d-\x9f]){_STRING})?"
)
_UNFINISHED = rf"(?:\x1b\[|\x9b){_CSI}|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]){_STRING}|\x1b[ -/]*"
#: Moves to another line, or to the start of the line; erasing the whole line counts as the latter.
_MOVE = r"(?:\x1b\[|\x9b)(\d{0,4})([ABDEFGK])"
#: A move this far to the left counts as a move to the start of the line.
_FAR = 100
_LONGEST_COLOUR = 64
_INTRODUCERS = "\x1b\x90\x98\x9b\x9d\x9e\x9f"

_compiled: tuple[re.Pattern[str], ...] | None = None


class TextView:
    """Bytes in, text out. Lines come out when they are complete; `close` returns the rest.

    With `colours`, SGR sequences stay in the text; all others are removed, too.
    """

    def __init__(self, colours: bool = False) -> None:
        self._colours = colours
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._cut = ""
        self._lines = RedrawnLines()

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
        """The unfinished line, or lines, in their present state. They may still change."""
        return self._lines.shown()

    @property
    def is_redrawn(self) -> bool:
        """Whether the unfinished line was overwritten before, and so may be again."""
        return self._lines.is_redrawn

    def _is_plain(self, data: bytes) -> bool:
        if self._cut or len(data.translate(None, _SPECIAL)) != len(data):
            return False
        return self._decoder.getstate()[0] != b"\xc2"

    def _strip(self, text: str) -> str:
        """The text without sequences; an incomplete one is kept for the next call."""
        sequences, unfinished, _, moves = _patterns()
        text = self._cut + text
        self._cut = ""
        at = max(text.rfind(introducer) for introducer in _INTRODUCERS)
        if at >= 0 and (found := unfinished.fullmatch(text, at)):
            self._cut = found[0] if self._colours and len(found[0]) < _LONGEST_COLOUR else _abbreviated(found[0])
            text = text[:at]
        if self._colours:
            return sequences.sub(_as_colour, text)
        return sequences.sub(_as_move if moves.search(text) else "", text)


def without_sequences(text: str) -> str:
    """The text without escape sequences and control characters but tab, `\\b`, `\\n` and `\\r`.

    Cursor movements and incomplete sequences are removed as well.
    """
    return _patterns()[0].sub("", text)


def _abbreviated(sequence: str) -> str:
    """A short equivalent of an unfinished sequence, of any length, with the same continuations."""
    head = sequence[: 2 if sequence[0] == "\x1b" and sequence[1:2] in tuple("[]PX^_") else 1]
    if head[-1] in "]PX^_\x90\x98\x9d\x9e\x9f" or sequence == head:
        return head
    if " " <= sequence[-1] <= "/":
        return head + " "
    how_far = sequence[len(head) :]
    # Neither a move nor, where those are kept, a colour.
    return sequence if len(how_far) <= 4 and how_far.isdecimal() else head + "?"


def _as_colour(sequence: re.Match[str]) -> str:
    """The replacement of a sequence where colours are kept: itself if it is one, else as `_as_move`."""
    return sequence[0] if _patterns()[2].fullmatch(sequence[0]) else _as_move(sequence)


def _as_move(sequence: re.Match[str]) -> str:
    """The replacement of a sequence: its movement between or within lines, or nothing."""
    found = _patterns()[3].fullmatch(sequence[0])
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

        plain = (_SEQUENCE, _UNFINISHED, _COLOUR)
        _compiled = (*map(re.compile, plain), re.compile(_MOVE, re.ASCII))
    return _compiled
