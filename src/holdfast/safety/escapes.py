"""Backslash escapes, as `$'…'`, `printf` and `echo -e` write characters."""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    r"\\(?:x(?P<hex>[0-9A-Fa-f]{1,2})|u(?P<short>[0-9A-Fa-f]{1,4})|U(?P<long>[0-9A-Fa-f]{1,8})"
    r"|(?P<octal>0?[0-7]{1,3})|c(?P<control>.)|(?P<letter>.))",
    re.DOTALL,
)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}


def unescaped(text: str) -> str:
    """The text that is meant; an escape that is none stands for its character."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(found: re.Match[str]) -> str:
    if code := found["hex"] or found["short"] or found["long"]:
        number = int(code, 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE010 else "\ufffd"
    if found["octal"]:
        return chr(int(found["octal"], 8) & 0xFF)
    if found["control"]:
        return chr(ord(found["control"]) & 0x1F)
    return _LETTERS.get(found["letter"], found["letter"])
