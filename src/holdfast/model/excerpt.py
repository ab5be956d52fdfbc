"""Output as a model is shown it: as much as fits, with a line that says what is missing and how to read it. No I/O."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.model import shortening
from holdfast.model.shortening import CharacterBudget, Short


class Excerpt(NamedTuple):
    text: str
    is_folded: bool
    """Whether rows of similar lines were folded."""


def of_text(text: str, room: CharacterBudget, process_id: str, first_line: int | None = 0) -> Excerpt:
    """A text that is known as a whole. `first_line` is the number of its first line in the log, None if unknown."""
    folded = text if shortening.fits(text, room) else shortening.fold(text)
    return Excerpt(_marked(shortening.shorten(folded, room), process_id, first_line), folded != text)


def of_ends(head: str, unread: int, tail: str, room: CharacterBudget, process_id: str) -> Excerpt:
    """A text of which the beginning and the end are known, with `unread` bytes in between."""
    first, last = shortening.fold(head), shortening.fold(tail)
    short = shortening.join(first, unread, last, room)
    return Excerpt(_marked(short, process_id, 0), first != head or last != tail)


def _marked(short: Short, process_id: str, first_line: int | None) -> str:
    if not short.left_out:
        return short.head
    lines = f", {short.lines} lines" if short.lines else ""
    how = f"process(action='log', session_id='{process_id}'"
    if first_line is None or "\n" not in short.head:
        how += ", data='bytes', offset=…)"
    else:
        how += f", offset={first_line + shortening.lines_in(short.head)})"
    line = "" if short.head.endswith("\n") or not short.head else "\n"
    return f"{short.head}{line}[… {short.left_out} characters{lines} left out: {how} …]\n{short.tail}"
