"""Keys become lines, as a terminal and its line editor make them; and whether a shell waits for more lines."""

from __future__ import annotations

import re
from dataclasses import dataclass

_KEYS = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[^\r\n]|\x1b[^\r\n\x1b]?|[\x00-\x1f\x7f]|[^\x00-\x1f\x7f]+", re.DOTALL
)
_PASTE, _PASTED = "\x1b[200~", "\x1b[201~"
#: Keys that neither end a line nor change it.
_HARMLESS = ("\x0c", "\x07", "\x00")
#: Enter, and readline's operate-and-get-next, which runs the line as well.
_ENTER = ("\r", "\n", "\x0f")
#: Keys that send a signal; the reader decides whether the line is discarded.
_SIGNALS = ("\x03", "\x1a", "\x1c")
_HEREDOC = re.compile(r"(?<!<)<<(-?)\s*(['\"]?)([\w.-]+)\2")
_QUOTED = re.compile(r"\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|(?:^|(?<=\s))#[^\n]*", re.DOTALL)
_TOKEN = re.compile(r"[;&|(){}\n]|[^\s;&|(){}]+")
_OPENS = ("if", "case", "for", "while", "until", "select")
_CLOSES = ("fi", "esac", "done")
_THEN_A_COMMAND = (*";&|({\n", "if", "then", "else", "elif", "while", "until", "do", "!", "time")


@dataclass(frozen=True, slots=True)
class Line:
    """A line that was ended by Enter."""

    text: str
    edited: bool
    """Whether keys were used that move within the line or recall an old one: its text is uncertain."""


@dataclass(frozen=True, slots=True)
class Typed:
    """Complete lines, and the unfinished rest."""

    lines: tuple[Line, ...]
    pending: str
    edited: bool
    interrupts: int = 0
    ends: int = 0
    """How many ends of input (Ctrl-D on an empty line)."""


def typed(pending: str, edited: bool, text: str, *, terminal: bool = True) -> Typed:
    """The lines after some more keys. Without a terminal no key edits: every key is part of the text."""
    keys = _Keyboard(pending, edited, terminal)
    for key in _KEYS.findall(text):
        keys.press(key)
    # Until a paste has ended, the effect of keys is not known.
    return Typed(tuple(keys.lines), keys.pending, keys.edited or keys.pastes, keys.interrupts, keys.ends)


class _Keyboard:
    """Follows the keys that every reader of a terminal handles alike; all others make a line uncertain."""

    def __init__(self, pending: str, edited: bool, terminal: bool) -> None:
        self.pending, self.edited = pending, edited
        self.lines: list[Line] = []
        self.interrupts = self.ends = 0
        self.pastes = False
        self._terminal = terminal

    def press(self, key: str) -> None:
        if key in _ENTER:
            self.lines.append(Line(self.pending, self.edited or key == "\x0f"))
            self.pending, self.edited = "", False
        elif key[0] >= " " and key != "\x7f":
            self.pending += key
            self.edited = self.edited or "\ufffd" in key
        elif key == "\t":
            # It may complete a word; at the start of a line, in a paste and in a pipe it is a blank.
            self.edited = self.edited or (self._terminal and not self.pastes and bool(self.pending.strip()))
            self.pending += "\t"
        elif not self._terminal or self.pastes:
            self.pastes = self.pastes and key != _PASTED
            self.edited = self.edited or key not in (_PASTED, "\x00")
        else:
            self._control(key)

    def _control(self, key: str) -> None:
        if key in _SIGNALS:
            # A shell may ignore them, and keep its line.
            self.edited = self.edited or bool(self.pending)
            self.pending, self.interrupts = "", self.interrupts + 1
        elif key == "\x04" and self.pending:
            # A terminal passes the unfinished line to the reader, who may run it.
            self.lines.append(Line(self.pending, self.edited))
        elif key == "\x04":
            self.ends += 1
        elif key in ("\x7f", "\x15"):
            self.pending = self.pending[:-1] if key == "\x7f" else ""
        elif key == _PASTE:
            self.pastes = True
        elif key not in _HARMLESS and key != _PASTED:
            self.edited = True


def waits_for_more(text: str) -> bool:
    """Whether a shell reads another line before it runs this text."""
    if _open_here_document(text) or text.rstrip("\n").endswith("\\"):
        return True
    bare = _QUOTED.sub("_", text)
    if "'" in bare or '"' in bare or bare.count("`") % 2:
        return True
    if bare.rstrip().endswith(("|", "&&", "(")) or bare.count("(") > bare.count(")") + bare.count("case "):
        return True
    braces = len(re.findall(r"(?:^|[\s;&|)])\{(?=\s)", bare)) - len(re.findall(r"(?:^|[\s;])\}", bare))
    return braces > 0 or _open_blocks(bare) > 0


def _open_blocks(bare: str) -> int:
    """How many of `if`, `case` and loops are open; keywords count only where a command may stand."""
    count, command_next = 0, True
    for token in _TOKEN.findall(bare):
        if command_next:
            count += (token in _OPENS) - (token in _CLOSES)
        command_next = token in _THEN_A_COMMAND or (command_next and token == ")")
    return count


def _open_here_document(text: str) -> bool:
    for found in _HEREDOC.finditer(text):
        rest = text[found.end() :].split("\n")[1:]
        if not any((line.lstrip("\t") if found[1] else line) == found[3] for line in rest):
            return True
    return False
