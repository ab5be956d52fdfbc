"""Texts of which every match of a pattern contains one: where none stands, the pattern need not be run. No I/O."""

from __future__ import annotations

import re

#: A shorter text is too frequent to save anything, and more of them take longer to look for than the pattern.
_SHORTEST = 3
_MOST = 4

_TOKEN = re.compile(
    r"""(?P<escape>\\(?:[pPQxCN]|[0-7]|.))
      | (?P<set>\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\])
      | (?P<repeat>[*+?]\??|\{\d+(?:,\d*)?\}\??)
      | (?P<plain>[^\\\[\]{}()*+?|.^$\n])
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_NOT_LITERAL = re.compile(r"\(\?[^:P]|\\[QpPxCN0-9aftnrv]")


def needles(pattern: str) -> tuple[str, ...]:
    """One text for each alternative of the pattern; none where that cannot be told at a glance."""
    if _NOT_LITERAL.search(pattern):
        return ()
    longest = [max(runs, key=len, default="") for runs in _alternatives(pattern)]
    if len(longest) > _MOST or any(len(text) < _SHORTEST for text in longest):
        return ()
    return tuple(longest)


def is_literal(pattern: str) -> bool:
    return bool(pattern) and re.search(r"[\\\[\]{}()*+?|.^$\n]", pattern) is None


def _alternatives(pattern: str) -> list[list[str]]:
    """The texts that stand in each alternative whatever else is in it; what is in groups is left out."""
    runs: list[list[str]] = [[""]]
    depth = 0
    for token in _TOKEN.finditer(pattern):
        kind, text = token.lastgroup, token[0]
        depth += (text == "(") - (text == ")") if kind == "other" else 0
        if depth or text == ")":
            runs[-1].append("")
        elif text == "|" and kind == "other":
            runs.append([""])
        elif kind == "repeat":
            _repeat(runs[-1], text)
        else:
            _add(runs[-1], kind, text)
    return runs


def _repeat(runs: list[str], text: str) -> None:
    """The last character may be there any number of times: it ends the text, or may be missing."""
    if text[0] != "+":
        runs[-1] = runs[-1][:-1]
    runs.append("")


def _add(runs: list[str], kind: str | None, text: str) -> None:
    if kind == "plain":
        runs[-1] += text
    elif kind == "escape" and not text[1].isalnum():
        runs[-1] += text[1]
    else:
        runs.append("")
