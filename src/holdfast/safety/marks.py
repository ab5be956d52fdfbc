"""Marked text: an expanded word, with private characters for parts that are no plain letters.

What is only known at run time becomes UNKNOWN. Characters that the shell still acts upon (globs, braces, a tilde, the
points where an unquoted value is split) become marks, so that `*` and `'*'` differ. Private characters are removed from
text that comes from outside.
"""

from __future__ import annotations

UNKNOWN = "\ue000"
UNKNOWN_TEXT = "${_holdfast_unknown_}"
"""An unknown part of a text, in text that is read as a script."""
SPLIT = "\ue001"
STAR = "\ue002"
QUESTION = "\ue003"
BRACKET = "\ue004"
OPEN = "\ue005"
COMMA = "\ue006"
CLOSE = "\ue007"
HOME = "\ue008"
QUOTED = "\ue009"
"""A quoted part: an empty word in quotes is a word."""

_GLOBS = {"*": STAR, "?": QUESTION, "[": BRACKET}
_ACTIVE = {**_GLOBS, "{": OPEN, ",": COMMA, "}": CLOSE}
_MEANT = {STAR: "*", QUESTION: "?", BRACKET: "[", OPEN: "{", COMMA: ",", CLOSE: "}", HOME: "~", QUOTED: ""}

_TO_ACTIVE = str.maketrans(_ACTIVE)
_TO_GLOBS = str.maketrans(_GLOBS)
_TO_LETTERS = str.maketrans(_MEANT)
_NO_BRACES = str.maketrans({OPEN: "{", COMMA: ",", CLOSE: "}", QUOTED: ""})
_FOREIGN = str.maketrans({chr(code): "\ufffd" for code in range(0xE000, 0xE00A)})


def cleaned(text: str) -> str:
    """Text from outside, without private characters."""
    return text if text.isascii() else text.translate(_FOREIGN)


def active(letter: str) -> str:
    """An unquoted character of a script."""
    return letter.translate(_TO_ACTIVE)


def split_value(value: str, separators: str = " \t\n") -> str:
    """A value that is used without quotes: split at blanks, its globs active."""
    for separator in separators:
        value = value.replace(separator, SPLIT)
    return value.translate(_TO_GLOBS)


def letters(marked: str) -> str:
    """The text with globs and tilde as letters; unknown parts stay marked."""
    return marked if marked.isascii() else marked.translate(_TO_LETTERS)


def without_braces(marked: str) -> str:
    return marked if marked.isascii() else marked.translate(_NO_BRACES)


def has_glob(marked: str) -> bool:
    return STAR in marked or QUESTION in marked or BRACKET in marked


def shown(marked: str) -> str:
    """For users: the text with `…` for unknown parts."""
    return letters(marked).replace(UNKNOWN, "…").replace(SPLIT, " ")
