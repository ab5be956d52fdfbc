"""Regular expressions for the lines of logs: RE2, which takes linear time for any pattern and text.

A pattern is matched against one line at a time, though it is run over many: `^` and `\\A` are the begin of a line, `$`
and `\\z` its end, and nothing matches a line break.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.errors import BadValue
from holdfast.logs.needed import needed

LONGEST_PATTERN = 4096
#: What a pattern may take for its program and its states; one that needs more states is run more slowly.
_MEMORY = 16 << 20
#: To search for more texts takes longer than to run the pattern.
_MOST_NEEDED = 4
_NOT_LITERAL = re.compile(r"[\\\[\]{}()*+?|.^$]")
#: What may follow a line that is not complete, as far as it makes a difference: a letter, or something else.
_FOLLOWERS = (b"x", b" ")

_HOW = "use what RE2 has: classes, groups, |, * + ? {n,m}, ^ $ \\b, (?i); see docs/reading.md"
_SYNTAX = "write it in RE2 syntax: no look-around, no back-references"
_UNLIMITED = "look-around and back-references need more than linear time and are not taken"

_TOKEN = re.compile(
    r"""\\Q.*?(?:\\E|\Z)                         # quoted: stays as it is
      | \\.                                      # an escape
      | \[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]  # a class
      | \(\?(?P<on>[imsU]*)-(?P<off>[imsU]*)(?=[:)])
      | .""",
    re.VERBOSE | re.DOTALL,
)
_AS_LINE = {r"\A": "(?m:^)", r"\z": "(?m:$)", r"\Z": "(?m:$)"}


class TextSpan(NamedTuple):
    start: int
    end: int


class Pattern:
    """A compiled pattern. Safe for several threads; the search itself lets other threads run."""

    def __init__(self, regexp: Any, anywhere: Any, literal: bytes = b"", needed: Sequence[bytes] = ()) -> None:
        #: The text that it is, if it is one.
        self.literal = literal
        #: Every match contains one of these texts, if there are any.
        self.needed = needed
        self._match = regexp.Match
        self._anywhere = anywhere

    def find(self, data: bytes, start: int = 0, end: int | None = None) -> TextSpan | None:
        """The first match within `start` to `end`. Only `^`, `$` and `\\b` see what lies around."""
        span = self._match(self._anywhere, data, start, len(data) if end is None else end)[0]
        return None if span[0] < 0 else TextSpan(*span)


def first_match(pattern: Pattern, text: bytes, begin: int, known: int, is_open: bool) -> TextSpan | None:
    """The first match in a text from `begin` on that ends behind `known`.

    `is_open`: the text may go on. Then a match counts only if no continuation can undo it.
    """
    if not is_open:
        return _ending_behind(pattern, text, begin, len(text), known)
    letter, other = _FOLLOWERS
    span = _ending_behind(pattern, text + letter, begin, len(text), known)
    if span is None or _ending_behind(pattern, text + other, begin, len(text), known) is None:
        return None
    return span


def _ending_behind(pattern: Pattern, data: bytes, at: int, stop: int, known: int) -> TextSpan | None:
    while at <= stop and (span := pattern.find(data, at, stop)) is not None:
        if span.end > known or not known:
            return span
        at = max(span.end, span.start + 1)
    return None


def compile_pattern(text: str, *, ignore_case: bool = False, fixed: bool = False, key: str | None = None) -> Pattern:
    """Raises BadValue, which says what RE2 refuses, and `key`, if there is one. Blocks for milliseconds or more."""
    from re2 import _re2

    pattern = text.encode(errors="surrogateescape")
    if len(pattern) > LONGEST_PATTERN and key is None:
        raise BadValue(f"a pattern has {LONGEST_PATTERN} bytes at most, this has {len(pattern)}", next=_HOW)
    if fixed:
        pattern = _re2.RE2.QuoteMeta(pattern)
    else:
        pattern = for_lines(text).encode(errors="surrogateescape")
        _compiled(pattern, text, key)  # on its own, so that it cannot reach out of the group that it is put into
    flags = b"(?mi:" if ignore_case else b"(?m:"
    regexp = _compiled(flags + pattern + b")", text, key)
    anywhere = _re2.RE2.Anchor.UNANCHORED
    if ignore_case:
        return Pattern(regexp, anywhere)
    if text and (fixed or _NOT_LITERAL.search(text) is None) and "\n" not in text:
        return Pattern(regexp, anywhere, literal=text.encode(errors="surrogateescape"))
    found = None if fixed else needed(text)
    if found is None or found.is_caseless or len(found.texts) > _MOST_NEEDED:
        return Pattern(regexp, anywhere)
    return Pattern(regexp, anywhere, needed=[text.encode(errors="surrogateescape") for text in sorted(found.texts)])


def for_lines(pattern: str) -> str:
    """The pattern with the begin and end of the text meant as those of a line."""
    return _TOKEN.sub(_for_lines, pattern)


def _for_lines(token: re.Match[str]) -> str:
    if token["off"] is not None:
        off = token["off"].replace("m", "")
        return f"(?{token['on']}m" + (f"-{off}" if off else "")
    return _AS_LINE.get(token[0], token[0])


def _compiled(pattern: bytes, shown: str, key: str | None) -> Any:
    from re2 import _re2

    regexp = _re2.RE2(pattern, re2_options())
    if regexp.ok():
        return regexp
    if key is not None:
        why = " ".join(_reason(regexp.error()).split())[:200]
        raise BadValue(f"{key}: re2 refuses the pattern: {why}", next=_SYNTAX)
    raise BadValue(f"the pattern {_shortened(shown)} cannot be used: {_reason(regexp.error())}", next=_HOW)


def re2_options(memory: int = _MEMORY) -> Any:
    from re2 import _re2

    options = _re2.RE2.Options()
    options.log_errors = False
    options.never_capture = True
    options.never_nl = True
    options.max_mem = memory
    return options


def _reason(error: bytes | str) -> str:
    why = error.decode(errors="replace") if isinstance(error, bytes) else error
    if re.match(r"invalid perl operator: \(\?(?:[=!>]|<[=!])|invalid escape sequence: \\(?:\d|k|g)", why):
        return f"{why} ({_UNLIMITED})"
    return why


def _shortened(text: str) -> str:
    return repr(text) if len(text) <= 60 else f"{text[:60]!r}…"
