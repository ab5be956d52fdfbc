"""Regular expressions for the lines of logs: RE2, which takes linear time whatever the pattern and the text.

A pattern is matched against one line at a time, though it is run over many: `^` and `\\A` are the begin of a line, `$`
and `\\z` its end, and nothing matches a line break.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.errors import BadValue
from holdfast.logs.needles import is_literal, needles

LONGEST_PATTERN = 4096
#: What a pattern may take for its program and its states; one that needs more states is run more slowly.
_MEMORY = 16 << 20

_HOW = "use what RE2 has: classes, groups, |, * + ? {n,m}, ^ $ \\b, (?i); see docs/reading.md"
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


class Span(NamedTuple):
    start: int
    end: int


class Pattern:
    """A compiled pattern. Safe for several threads; the search itself lets other threads run."""

    def __init__(self, regexp: Any, anywhere: Any, literal: bytes = b"", needles: Sequence[bytes] = ()) -> None:
        #: The text that it is, if it is one.
        self.literal = literal
        #: Every match contains one of these texts, if there are any.
        self.needles = needles
        self._match = regexp.Match
        self._anywhere = anywhere

    def find(self, data: bytes, start: int = 0, end: int | None = None) -> Span | None:
        """The first match within `start` to `end`. What lies around is looked at by `^`, `$` and `\\b` alone."""
        span = self._match(self._anywhere, data, start, len(data) if end is None else end)[0]
        return None if span[0] < 0 else Span(*span)


def compile_pattern(text: str, *, ignore_case: bool = False, fixed: bool = False) -> Pattern:
    """Raises BadValue that says what RE2 does not take. Blocks for milliseconds, with a large pattern for more."""
    from re2 import _re2

    pattern = text.encode(errors="surrogateescape")
    if len(pattern) > LONGEST_PATTERN:
        raise BadValue(f"a pattern has {LONGEST_PATTERN} bytes at most, this has {len(pattern)}", next=_HOW)
    if fixed:
        pattern = _re2.RE2.QuoteMeta(pattern)
    else:
        pattern = for_lines(text).encode(errors="surrogateescape")
        _compiled(pattern, text)  # on its own, so that it cannot reach out of the group that it is put into
    flags = b"(?mi:" if ignore_case else b"(?m:"
    regexp = _compiled(flags + pattern + b")", text)
    anywhere = _re2.RE2.Anchor.UNANCHORED
    if ignore_case:
        return Pattern(regexp, anywhere)
    if (fixed and text and "\n" not in text) or is_literal(text):
        return Pattern(regexp, anywhere, literal=text.encode(errors="surrogateescape"))
    return Pattern(regexp, anywhere, needles=[] if fixed else [needle.encode() for needle in needles(text)])


def for_lines(pattern: str) -> str:
    """The pattern with the begin and end of the text meant as those of a line."""
    return _TOKEN.sub(_for_lines, pattern)


def _for_lines(token: re.Match[str]) -> str:
    if token["off"] is not None:
        off = token["off"].replace("m", "")
        return f"(?{token['on']}m" + (f"-{off}" if off else "")
    return _AS_LINE.get(token[0], token[0])


def _compiled(pattern: bytes, shown: str) -> Any:
    from re2 import _re2

    regexp = _re2.RE2(pattern, _options())
    if regexp.ok():
        return regexp
    raise BadValue(f"the pattern {_shortened(shown)} cannot be used: {_reason(regexp.error())}", next=_HOW)


def _options() -> Any:
    from re2 import _re2

    options = _re2.RE2.Options()
    options.log_errors = False
    options.never_capture = True
    options.never_nl = True
    options.max_mem = _MEMORY
    return options


def _reason(error: bytes | str) -> str:
    why = error.decode(errors="replace") if isinstance(error, bytes) else error
    if re.match(r"invalid perl operator: \(\?(?:[=!>]|<[=!])|invalid escape sequence: \\(?:\d|k|g)", why):
        return f"{why} ({_UNLIMITED})"
    return why


def _shortened(text: str) -> str:
    return repr(text) if len(text) <= 60 else f"{text[:60]!r}…"
