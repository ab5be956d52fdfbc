"""Texts of which every match of an expression contains one: where none stands, it need not be run. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.records import Struct

#: A shorter text is too frequent to save anything.
_SHORTEST = 3
_MOST = 16

_TOKEN = re.compile(
    r"""(?P<sign>\\[!-/:-@\[-`{-~])
      | (?P<other>\\[dDwWsSbBt]|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|[.^$])
      | (?P<repeat>[*+?]\??|\{(?P<least>\d+)(?:,\d*)?\}\??)
      | (?P<open>\((?:\?:|\?P<\w+>|(?!\?)))
      | (?P<close>\))
      | (?P<either>\|)
      | (?P<plain>[^\\\[\](){}*+?|.^$])""",
    re.VERBOSE | re.DOTALL,
)

NeededTexts = frozenset[str]


class Needed(Struct, frozen=True):
    """The texts; `is_caseless`: in lower or upper case."""

    texts: NeededTexts
    is_caseless: bool


class _Unknown(Exception):
    """The expression has something in it that is not understood here."""


def needed(expression: str) -> Needed | None:
    """None where there is no such text, or the expression is too complex to say."""
    is_caseless = expression.startswith("(?i)")
    try:
        tokens = _tokens(expression.removeprefix("(?i)"))
        texts = _alternatives(tokens)
    except (_Unknown, RecursionError):
        return None
    if texts is None or min(map(len, texts)) < _SHORTEST or (is_caseless and not all(map(str.isascii, texts))):
        return None
    return Needed(texts, is_caseless)


def _tokens(expression: str) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(expression):
        token = _TOKEN.match(expression, at)
        if token is None:
            raise _Unknown
        yield token
        at = token.end()


def _alternatives(tokens: Iterator[re.Match[str]]) -> NeededTexts | None:
    """The texts of what follows up to the end of the group: at least one for each alternative."""
    branch = _Branch()
    branches = [branch]
    for token in tokens:
        match token.lastgroup:
            case "close":
                break
            case "either":
                branch = _Branch()
                branches.append(branch)
            case "open":
                branch.take(_alternatives(tokens))
            case "plain" | "sign":
                branch.add(token[0][-1])
            case "other":
                branch.take(None)
            case _:
                branch.repeat(token["repeat"][0] == "+" or int(token["least"] or 0) > 0)
    found = [branch.end() for branch in branches]
    texts = frozenset().union(*(texts or () for texts in found))
    return texts if all(found) and len(texts) <= _MOST else None


class _Branch:
    """One alternative: the best of the texts that it has to contain so far."""

    def __init__(self) -> None:
        self._best: NeededTexts | None = None
        self._run = ""
        #: The texts of the last group, as long as a repetition may follow.
        self._group: NeededTexts | None = None

    def add(self, character: str) -> None:
        self._offer(self._group)
        self._group = None
        self._run += character

    def take(self, group: NeededTexts | None) -> None:
        """The next thing is not one character."""
        self.end()
        self._group = group

    def repeat(self, is_there: bool) -> None:
        """The last thing is repeated; it is there at least once if `is_there`."""
        if not is_there:
            self._run, self._group = self._run[:-1], None
        self.end()

    def end(self) -> NeededTexts | None:
        self._offer(self._group)
        self._offer(frozenset((self._run,)) if self._run else None)
        self._group, self._run = None, ""
        return self._best

    def _offer(self, texts: NeededTexts | None) -> None:
        if texts and (self._best is None or min(map(len, texts)) > min(map(len, self._best))):
            self._best = texts
