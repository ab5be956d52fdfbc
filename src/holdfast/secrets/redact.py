"""Masking secrets in text: known values, and everything that looks like a secret. No I/O.

Known values are found even when line ends, spaces, escape sequences or carriage returns split them. Shapes of
secrets are searched line by line, through escape sequences.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate

from holdfast.secrets import shapes
from holdfast.secrets.environment import SHORTEST_MASKED
from holdfast.secrets.shapes import Span

MASK = "[redacted]"

#: A longer line is searched in pieces.
_LONGEST = 1 << 16
#: A piece ends at one of these, if its last part contains one.
_GAP = re.compile(r"[\s,;\"'(){}\[\]<>]")
_GAP_WITHIN = 4096

_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_ENDS = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
#: A line of a private key or one of its headers, behind an optional log prefix.
_KEY_LINE = re.compile(
    r"(?:[^|\n]{0,60}\|)?[\s>#*\"']{0,16}"
    r"(?:[A-Za-z0-9+/=]{0,200}|(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): [^\n]{0,200})"
    r"[\s\"',\\]{0,16}\Z"
)


#: Control characters but tab and newline, and characters without width.
_CONTROL = r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9a\x9c-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060\ufeff]+"
#: With escape sequences, each within one line.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~]?)"
    rf"|\x9b[0-?]*[ -/]*[@-~]?|{_CONTROL}"
)
_CONTROLS = re.compile(rf"(?:[\x1b\x9b]|{_CONTROL})+")
_SPACE = re.compile(r"\s+")


class _Stripped:
    """Text without terminal control; `whence` maps a span of `text` to the original."""

    def __init__(self, original: str, noise: re.Pattern[str]) -> None:
        self._original = original
        self._noise = noise
        self.text = noise.sub("", original)

    def whence(self, start: int, end: int) -> Span:
        """The span in the original of a span that is not empty."""
        return self._index(start), self._index(end - 1) + 1

    def _index(self, at: int) -> int:
        starts, sums = self._pieces
        piece = bisect_right(sums, at, hi=len(starts)) - 1
        return starts[piece] + at - sums[piece]

    @cached_property
    def _pieces(self) -> tuple[list[int], list[int]]:
        """Where each piece begins in the original, and in what is left. Computed only when a secret was found."""
        cuts = [match.span() for match in self._noise.finditer(self._original)]
        starts = [0, *(end for _, end in cuts)]
        ends = [*(start for start, _ in cuts), len(self._original)]
        return starts, [0, *accumulate(end - start for start, end in zip(starts, ends, strict=True))]


def _views(text: str) -> tuple[_Stripped, ...]:
    """The text as a terminal shows it, and with escape sequences also the text that they hide."""
    shown = _Stripped(text, _ESCAPES)
    return (shown, _Stripped(text, _CONTROLS)) if "\x1b" in text or "\x9b" in text else (shown,)


def _without_space(text: str) -> _Stripped:
    return _Stripped(text, _SPACE)


class Forms(tuple[str, ...]):
    """Known values prepared for repeated searches."""

    @classmethod
    def of(cls, values: Iterable[str]) -> Forms:
        if isinstance(values, Forms):
            return values
        forms = {"".join(value.split()) for value in values}
        return cls(sorted(form for form in forms if len(form) >= SHORTEST_MASKED))


def redact(text: str, known: Iterable[str] = ()) -> str:
    """The text with every secret masked. `known`: forms of values, from `environment.known_forms`."""
    return Redactor(known).finish(text)


def for_model(text: str, known_values: Iterable[str] = ()) -> str:
    """As `redact`, for an excerpt: a known value that is cut at its start or end is masked as well."""
    if not text or (len(text) < SHORTEST_MASKED and text.isalnum()):
        return text
    forms = Forms.of(known_values)
    return redact(_masked(text, _edges(text, forms), is_masking=False)[0], forms)


class Redactor:
    """Masks a stream. The result does not depend on how the text is cut into pieces.

    A line is returned when it is complete, except an end that may be the beginning of a known value.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = Forms.of(known)
        #: Not a complete line yet.
        self._line = ""
        #: Searched but held back, and its masked spans.
        self._held = ""
        self._spans: list[Span] = []
        self._is_in_key = False
        #: Whether the last returned text ended inside a mask.
        self._is_masking = False

    def feed(self, text: str) -> str:
        """The masked text that is final now."""
        pieces, self._line = _complete_lines(self._line + text)
        return "".join([self._release(piece, is_last=False) for piece in pieces])

    def finish(self, text: str = "") -> str:
        """The rest, after this last piece."""
        pieces, rest = _complete_lines(self._line + text)
        self._line = ""
        *pieces, last = [*pieces, rest] if rest else pieces
        return "".join([self._release(piece, is_last=False) for piece in pieces]) + self._release(last, is_last=True)

    def _release(self, piece: str, is_last: bool) -> str:
        at, window = len(self._held), self._held + piece
        found = [(start + at, end + at) for start, end in self._shapes(piece)]
        dense = _dense(window) if self._known else []
        spans = [*self._spans, *found, *_occurrences(dense, self._known)]
        upto = len(window) if is_last else _settled(window, dense, self._known)
        out, self._is_masking = _masked(window[:upto], _clipped(spans, 0, upto), self._is_masking)
        self._held, self._spans = window[upto:], _clipped(spans, upto, len(window))
        return out

    def _shapes(self, text: str) -> Iterator[Span]:
        shown, *hidden = _views(text)
        yield from _back(shown, (*shapes.find(shown.text), *self._keys(shown.text)))
        for view in hidden:
            yield from _back(view, shapes.find(view.text))

    def _keys(self, text: str) -> Iterator[Span]:
        """The lines of private keys."""
        if not self._is_in_key and "PRIVATE KEY" not in text:
            return
        at = 0
        for line in text.splitlines(keepends=True):
            if _KEY_ENDS.search(line) or not _KEY_LINE.match(line):
                self._is_in_key = False
            if self._is_in_key:
                yield at, at + len(line)
            begins = _KEY_BEGINS.search(line)
            if begins and not _KEY_ENDS.search(line):
                self._is_in_key = True
                yield at + begins.end(), at + len(line.rstrip())
            at += len(line)


def _complete_lines(text: str) -> tuple[list[str], str]:
    """Pieces of complete lines, and the rest. A cut within a line depends on nothing but the line."""
    pieces, begin, at = [], 0, 0
    while True:
        end = text.find("\n", at, at + _LONGEST)
        if end >= 0:
            at = end + 1
        elif len(text) - at >= _LONGEST:
            if begin < at:
                pieces.append(text[begin:at])
            begin = at + _gap(text[at : at + _LONGEST])
            pieces.append(text[at:begin])
            at = begin
        else:
            return [*pieces, text[begin:at]], text[at:]


def _gap(line: str) -> int:
    """Where to cut a long line: behind the last gap near its end."""
    beginning = len(line) - _GAP_WITHIN
    gaps = [match.end() for match in _GAP.finditer(line, beginning)]
    return gaps[-1] if gaps else len(line)


def _back(view: _Stripped, spans: Iterable[Span]) -> Iterator[Span]:
    return (view.whence(start, end) for start, end in spans if start < end)


#: A text as it is searched for known values: without terminal control, and that without spaces.
_Dense = tuple[_Stripped, _Stripped]


def _dense(text: str) -> list[_Dense]:
    return [(view, _without_space(view.text)) for view in _views(text)]


def _occurrences(texts: list[_Dense], forms: Forms) -> Iterator[Span]:
    for view, dense in texts:
        for form in forms:
            at = dense.text.find(form)
            while at >= 0:
                yield view.whence(*dense.whence(at, at + len(form)))
                at = dense.text.find(form, at + 1)


def _settled(window: str, texts: list[_Dense], forms: Forms) -> int:
    """The position before which later text cannot complete a known value."""
    settled = len(window)
    for view, dense in texts:
        size = len(dense.text)
        if longest := max(_overlap(dense.text, form) for form in forms):
            settled = min(settled, view.whence(*dense.whence(size - longest, size))[0])
    return settled


def _overlap(text: str, form: str, least: int = 1) -> int:
    """How many characters at the end of the text begin the form without completing it."""
    if not text:
        return 0
    last = text[-1]
    for size in range(min(len(form) - 1, len(text)), least - 1, -1):
        if form[size - 1] == last and text.endswith(form[:size]):
            return size
    return 0


def _edges(text: str, forms: Forms) -> Iterator[Span]:
    """Parts of known values that are cut by the start or the end of the text."""
    for view, dense in _dense(text) if forms else ():
        ahead, behind, size = dense.text, dense.text[::-1], len(dense.text)
        for form in forms:
            if cut := _overlap(ahead, form, SHORTEST_MASKED):
                yield view.whence(*dense.whence(size - cut, size))
            if cut := _overlap(behind, form[::-1], SHORTEST_MASKED):
                yield view.whence(*dense.whence(0, cut))


def _clipped(spans: Iterable[Span], start: int, end: int) -> list[Span]:
    """The spans between two positions, relative to the first."""
    clipped = ((max(a, start) - start, min(b, end) - start) for a, b in spans)
    return [(a, b) for a, b in clipped if a < b]


def _masked(text: str, spans: Iterable[Span], is_masking: bool) -> tuple[str, bool]:
    """The text with one mask for each run of masked characters, and whether its end is masked."""
    out, at = [], 0
    for start, end in sorted(spans):
        if end <= at:
            continue
        if start > at:
            out.append(text[at:start])
        if start > at or (at == 0 and not is_masking):
            out.append(MASK)
        at = end
    out.append(text[at:])
    return "".join(out), at == len(text) if text else is_masking
