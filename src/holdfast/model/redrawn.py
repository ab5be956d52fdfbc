"""Lines that are being written and overwritten, without what only a terminal understands. Pure."""

from __future__ import annotations

#: A line is held until it is complete, since it may still be overwritten; of a longer one this much is let go.
LONGEST_HELD = 1 << 14
#: The cursor goes a line up, or down.
UP, DOWN = "\x0b", "\x0c"

#: Of lines that are drawn again and again, as many are held.
_HIGHEST = 200


class Lines:
    """The line that is being written; where the cursor has gone up, the lines from there on down.

    Such a block is held from the first move up until something is written below it.
    """

    def __init__(self) -> None:
        self._line = Line()
        self._block: list[Line] = []
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
        self._line, self._block = Line(), []
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
    def _here(self) -> Line:
        return self._block[self._row] if self._block else self._line

    def _go_up(self, count: int) -> str:
        if not self._block:
            self._block, self._row = [self._line], 0
        missing = min(max(0, count - self._row), _HIGHEST - len(self._block))
        self._block = [*(Line() for _ in range(missing)), *self._block]
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
    """The text cut into runs of line ends, of moves, and of what lies between."""
    import re

    return re.findall("\n+|\x0b+|\x0c+|[^\n\x0b\x0c]+", text)


class Line:
    """The line that is being written: the states it went through, and the one it is in."""

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
        now = self._now.rstrip()
        return self._summary(now or self._last, self._states + bool(now))

    @property
    def is_redrawn(self) -> bool:
        return bool(self._states) or self._returned

    def go_back(self) -> None:
        """What is written next overwrites it."""
        self._returned = True

    def _clear(self) -> None:
        self._now = ""
        self._first = self._last = ""
        self._states = 0
        self._returned = False

    def _summary(self, last: str, states: int) -> str:
        if states == 1:
            return last
        first = "" if last == self._first else f"{self._first} … "
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
            self._now = self._now[:-steps]

    def _append(self, text: str) -> str:
        if not text:
            return ""
        if self._returned:
            self._overwrite()
        self._now += text
        return self._let_go() if len(self._now) > LONGEST_HELD else ""

    def _overwrite(self) -> None:
        self._returned = False
        state, self._now = self._now.rstrip(), ""
        if state:
            self._states += 1
            self._first = self._first or state
            self._last = state

    def _let_go(self) -> str:
        """Give up on a line too long to be held: what was written so far stands."""
        size = (len(self._now) - 1) // LONGEST_HELD * LONGEST_HELD
        before = self._summary(self._last, self._states) + " … " if self._states else ""
        out, rest = before + self._now[:size], self._now[size:]
        self._clear()
        self._now = rest
        return out
