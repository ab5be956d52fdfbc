"""What a watch has to find, told the simple way: by looking at the whole log, a state at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdfast.logs.pattern import Pattern, compile_pattern
from holdfast.model.text import TextView

_END = re.compile(rb"\n|\r|(?:\x1b\[|\xc2\x9b)(\d{0,4})([ABDEFGK])")


def is_end(found: re.Match[bytes]) -> bool:
    if found[2] is None:
        return True
    count = int(found[1] or 0)
    return {b"G": count <= 1, b"D": count >= 100, b"K": count == 2}.get(found[2], True)


def states(log: bytes, is_final: bool) -> Iterator[tuple[int, int, bool]]:
    """Where each begins and ends, and whether it is complete."""
    start = 0
    for found in _END.finditer(log):
        if is_end(found):
            is_empty_line = found[0] == b"\n" and (start == 0 or log[start - 1 : start] == b"\n")
            if start < found.start() or is_empty_line:
                yield start, found.start(), True
            start = found.end()
    if start < len(log):
        yield start, len(log), is_final


def text(raw: bytes) -> str:
    """The text of a state without backspaces, and without a character that is not complete."""
    view = TextView()
    return view.feed(raw) + view.peek()


def compiled(literals: Sequence[str], expressions: Sequence[str]) -> list[tuple[str, Pattern]]:
    return [
        *((text, compile_pattern(text, fixed=True)) for text in literals),
        *((text, compile_pattern(text)) for text in expressions),
    ]


def matching(patterns: list[tuple[str, Pattern]], line: str, is_complete: bool) -> list[str]:
    """The patterns that match a text; one that goes on may go on in a letter or in something else."""
    endings = ("",) if is_complete else ("x", " ")
    size = len(line.encode())
    return [
        name
        for name, pattern in patterns
        if all(pattern.find((line + ending).encode(), 0, size) is not None for ending in endings)
    ]


def found(
    log: bytes, literals: Sequence[str], expressions: Sequence[str], is_final: bool
) -> list[tuple[int, int, list[str], str]]:
    """Every matching state: where it begins and ends, which patterns match, and its text."""
    patterns = compiled(literals, expressions)
    told = []
    for start, stop, is_complete in states(log, is_final):
        line = text(log[start:stop]) if not is_complete else closed_text(log[start:stop])
        if names := matching(patterns, line, is_complete):
            told.append((start, stop, names, line))
    return told


def closed_text(raw: bytes) -> str:
    view = TextView()
    return view.feed(raw) + view.close()
