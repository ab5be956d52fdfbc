"""Marked text: what a shell would make of a word, with signs where the outcome is not a matter of letters.

A word of a script is expanded before it is judged. What cannot be known before it runs becomes UNKNOWN; characters
that the shell would still act upon (globs, braces, a tilde, the places where an unquoted value is cut) become marks
of their own, so that `*` and `'*'` are two things. The marks are private characters; text that comes from outside is
freed of them first.
"""

from __future__ import annotations

UNKNOWN = "\ue000"
SPLIT = "\ue001"
STAR = "\ue002"
QUESTION = "\ue003"
BRACKET = "\ue004"
OPEN = "\ue005"
COMMA = "\ue006"
CLOSE = "\ue007"
HOME = "\ue008"
QUOTED = "\ue009"
"""Something was quoted here: an empty word is a word."""

_GLOBS = {"*": STAR, "?": QUESTION, "[": BRACKET}
_ACTIVE = {**_GLOBS, "{": OPEN, ",": COMMA, "}": CLOSE}
_MEANT = {STAR: "*", QUESTION: "?", BRACKET: "[", OPEN: "{", COMMA: ",", CLOSE: "}", HOME: "~", QUOTED: ""}

_TO_ACTIVE = str.maketrans(_ACTIVE)
_TO_GLOBS = str.maketrans(_GLOBS)
_TO_LETTERS = str.maketrans(_MEANT)
_NO_BRACES = str.maketrans({OPEN: "{", COMMA: ",", CLOSE: "}", QUOTED: ""})
_FOREIGN = str.maketrans({chr(code): "\ufffd" for code in range(0xE000, 0xE00A)})


def cleaned(text: str) -> str:
    """Text from outside, without private characters that would be taken for marks."""
    return text if text.isascii() else text.translate(_FOREIGN)


def active(letter: str) -> str:
    """An unquoted character of a script."""
    return letter.translate(_TO_ACTIVE)


def split_value(value: str, separators: str = " \t\n") -> str:
    """A value as it stands in a script without quotes: cut at blanks, its globs active."""
    for separator in separators:
        value = value.replace(separator, SPLIT)
    return value.translate(_TO_GLOBS)


def letters(marked: str) -> str:
    """The text, globs and tilde as their letters; what is unknown stays marked."""
    return marked if marked.isascii() else marked.translate(_TO_LETTERS)


def without_braces(marked: str) -> str:
    return marked if marked.isascii() else marked.translate(_NO_BRACES)


def has_glob(marked: str) -> bool:
    return STAR in marked or QUESTION in marked or BRACKET in marked


def shown(marked: str) -> str:
    """For people: the text with `…` for what is not known."""
    return letters(marked).replace(UNKNOWN, "…").replace(SPLIT, " ")
