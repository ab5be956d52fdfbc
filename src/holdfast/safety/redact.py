"""Masking secrets in text: known values, and whatever looks like a secret. No I/O.

A character is masked when it belongs to a known value, or to something that has the shape of a secret. Known values
are found however they are broken: by line ends, spaces, escape sequences or carriage returns. Shapes are looked for
line by line, through escape sequences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from holdfast.safety import shapes
from holdfast.safety.bare import Bare, views, without_space
from holdfast.safety.secrets import SHORTEST_MASKED
from holdfast.safety.shapes import Span

MASK = "[redacted]"

#: A line that is longer is looked at in pieces.
_LONGEST = 1 << 16
#: Pieces end at one of these, where there is one in the last part of it.
_GAP = re.compile(r"[\s,;\"'(){}\[\]<>]")
_GAP_WITHIN = 4096

_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_ENDS = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
#: Whatever stands before it, as a name and a bar: a line of a private key, or one of its headers.
_KEY_LINE = re.compile(
    r"(?:[^|\n]{0,60}\|)?[\s>#*\"']{0,16}"
    r"(?:[A-Za-z0-9+/=]{0,200}|(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): [^\n]{0,200})"
    r"[\s\"',\\]{0,16}\Z"
)


class Forms(tuple[str, ...]):
    """Known values made ready to be looked for, where that is done again and again."""

    @classmethod
    def of(cls, values: Iterable[str]) -> Forms:
        if isinstance(values, Forms):
            return values
        forms = {"".join(value.split()) for value in values}
        return cls(sorted(form for form in forms if len(form) >= SHORTEST_MASKED))


def redact(text: str, known: Iterable[str] = ()) -> str:
    """The text with every secret in it masked. `known`: forms of values, as `secrets.known_forms` gives them."""
    return Redactor(known).finish(text)


def for_model(text: str, known_values: Iterable[str] = ()) -> str:
    """As `redact`, for a text that may be cut out of a longer one: a known value cut by its edges is masked, too."""
    forms = Forms.of(known_values)
    return redact(_told(text, _edges(text, forms), is_masking=False)[0], forms)


class Redactor:
    """Text in, masked text out. However the text is cut into pieces, the outcome is the same.

    A line comes out when it is complete; of its end, what may be the beginning of a known value stays until that is
    known.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = Forms.of(known)
        #: Not a complete line yet.
        self._line = ""
        #: Looked at and held back, and what is masked of it.
        self._held = ""
        self._spans: list[Span] = []
        self._is_in_key = False
        #: Whether what came out last was a mask that goes on.
        self._is_masking = False

    def feed(self, text: str) -> str:
        """What can be said now."""
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
        out, self._is_masking = _told(window[:upto], _clipped(spans, 0, upto), self._is_masking)
        self._held, self._spans = window[upto:], _clipped(spans, upto, len(window))
        return out

    def _shapes(self, text: str) -> Iterator[Span]:
        shown, *hidden = views(text)
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
    """Where to cut a line that goes on: behind the last gap near its end."""
    beginning = len(line) - _GAP_WITHIN
    gaps = [match.end() for match in _GAP.finditer(line, beginning)]
    return gaps[-1] if gaps else len(line)


def _back(view: Bare, spans: Iterable[Span]) -> Iterator[Span]:
    return (view.whence(start, end) for start, end in spans if start < end)


#: A text as it is looked through for known values: as it is shown, and that without spaces.
_Dense = tuple[Bare, Bare]


def _dense(text: str) -> list[_Dense]:
    return [(view, without_space(view.text)) for view in views(text)]


def _occurrences(texts: list[_Dense], forms: Forms) -> Iterator[Span]:
    for view, dense in texts:
        for form in forms:
            at = dense.text.find(form)
            while at >= 0:
                yield view.whence(*dense.whence(at, at + len(form)))
                at = dense.text.find(form, at + 1)


def _settled(window: str, texts: list[_Dense], forms: Forms) -> int:
    """Up to where nothing that follows can make a known value of what is there."""
    settled = len(window)
    for view, dense in texts:
        size = len(dense.text)
        if longest := max(_overlap(dense.text, form) for form in forms):
            settled = min(settled, view.whence(*dense.whence(size - longest, size))[0])
    return settled


def _overlap(text: str, form: str, least: int = 1) -> int:
    """How many characters at the end of the text are the beginning of the form, and not all of it."""
    if not text:
        return 0
    last = text[-1]
    for size in range(min(len(form) - 1, len(text)), least - 1, -1):
        if form[size - 1] == last and text.endswith(form[:size]):
            return size
    return 0


def _edges(text: str, forms: Forms) -> Iterator[Span]:
    """Known values of which only the end is there at the beginning, or only the beginning at the end."""
    for view, dense in _dense(text) if forms else ():
        ahead, behind, size = dense.text, dense.text[::-1], len(dense.text)
        for form in forms:
            if cut := _overlap(ahead, form, SHORTEST_MASKED):
                yield view.whence(*dense.whence(size - cut, size))
            if cut := _overlap(behind, form[::-1], SHORTEST_MASKED):
                yield view.whence(*dense.whence(0, cut))


def _clipped(spans: Iterable[Span], start: int, end: int) -> list[Span]:
    """What lies between, counted from there."""
    clipped = ((max(a, start) - start, min(b, end) - start) for a, b in spans)
    return [(a, b) for a, b in clipped if a < b]


def _told(text: str, spans: Iterable[Span], is_masking: bool) -> tuple[str, bool]:
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
