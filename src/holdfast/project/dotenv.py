"""Environment files: one `NAME=VALUE` per line. No I/O.

    # a comment
    PLAIN=some words # a space and a # begin a comment
    export QUOTED='as it is: $HOME \\n #'
    DOUBLE="a tab\\t, a line end\\n, a quote \\" and a backslash \\\\"

Quoted values may span lines. `$` is not expanded. Of two lines with the same name, the last one wins.
"""

from __future__ import annotations

import re

_HEAD = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*")
_SINGLE = re.compile(r"'([^']*)'")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_PLAIN = re.compile(r"[^\n]*")
_COMMENT = re.compile(r"(?:^|[ \t])#.*")
_REST = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_NOTHING = re.compile(r"[ \t]*(?:#[^\n]*)?\n|[ \t]*(?:#[^\n]*)?\Z|[ \t]*\Z")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$", "\n": ""}


class BadLine(ValueError):
    """A line that is not valid; `line` is its number, from 1."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


def parse(text: str) -> dict[str, str]:
    """The variables, in the order in which they first appear. Raises BadLine."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        if nothing := _NOTHING.match(text, at):
            at = max(nothing.end(), at + 1)
            continue
        name, value, at = _variable(text, at)
        found[name] = value
    return found


def _variable(text: str, at: int) -> tuple[str, str, int]:
    """Name and value of the variable at `at`, and where the next line begins."""
    head = _HEAD.match(text, at)
    if head is None:
        raise BadLine(_line(text, at), "is not NAME=VALUE")
    value, end = _value(text, head.end(), head[1])
    if "\0" in value:
        raise BadLine(_line(text, at), f"{head[1]} contains a NUL character")
    return head[1], value, end


def _value(text: str, at: int, name: str) -> tuple[str, int]:
    quote = text[at : at + 1]
    if quote not in ("'", '"'):
        plain = _PLAIN.match(text, at)
        assert plain is not None
        return _COMMENT.sub("", plain[0], count=1).strip(), plain.end() + 1
    quoted = (_SINGLE if quote == "'" else _DOUBLE).match(text, at)
    if quoted is None:
        raise BadLine(_line(text, at), f"the quote {quote} of {name} is never closed")
    rest = _REST.match(text, quoted.end())
    if rest is None:
        raise BadLine(_line(text, quoted.end()), f"something follows the closing quote of {name}")
    value = quoted[1] if quote == "'" else _ESCAPE.sub(_unescaped, quoted[1])
    return value, rest.end()


def _unescaped(escape: re.Match[str]) -> str:
    """The character of an escape; an unknown escape is left as it is."""
    return _ESCAPED.get(escape[1], escape[0])


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
