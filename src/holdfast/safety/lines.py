"""What is typed becomes lines, as a terminal and its line editor make them of keys; and whether a shell waits for
more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_KEYS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|\x1b.?|[\x00-\x1f\x7f]|[^\x00-\x1f\x7f]+", re.DOTALL)
_PASTE = ("\x1b[200~", "\x1b[201~")
_HARMLESS = ("\t", "\x0c", "\x07", "\x00", "\x1b", *_PASTE)
_ARROWS = re.compile(r"\x1b[\[O][ABCDHF]")
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
    """Whether keys were used that move within the line or bring back an old one: what it says is not sure."""


@dataclass(frozen=True, slots=True)
class Typed:
    """Lines that are complete, and what is not."""

    lines: tuple[Line, ...]
    pending: str
    edited: bool
    interrupts: int = 0
    ends: int = 0
    """How many ends of input (Ctrl-D on an empty line)."""


def typed(pending: str, edited: bool, text: str) -> Typed:
    """What is there after some more keys."""
    lines: list[Line] = []
    interrupts = ends = 0
    for key in _KEYS.findall(text):
        if key in ("\r", "\n"):
            lines.append(Line(pending, edited))
            pending, edited = "", False
        elif key in ("\x03", "\x1a", "\x1c"):
            pending, edited, interrupts = "", False, interrupts + 1
        elif key == "\x04":
            ends += not pending
        elif key in ("\x7f", "\x08"):
            pending = pending[:-1]
        elif key == "\x15":
            pending = ""
        elif key == "\x17":
            pending = re.sub(r"\S*\s*$", "", pending)
        elif key[0] >= " " and key != "\x7f":
            pending += key
        elif key not in _HARMLESS:
            edited = edited or bool(pending) or not _ARROWS.fullmatch(key)
    return Typed(tuple(lines), pending, edited, interrupts, ends)


def waits_for_more(text: str) -> bool:
    """Whether a shell would ask for another line before it runs anything of this."""
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
    """How many of `if`, `case` and loops have no end yet; the words count only where a command may stand."""
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
