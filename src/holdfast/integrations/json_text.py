"""Changes in a JSON text that leave every other character of it as it is. Pure."""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeAlias

    Path: TypeAlias = tuple[str | int, ...]

_BLANKS = " \t\r\n"
_BLANK = re.compile(rf"[{_BLANKS}]*")
_DECODER = json.JSONDecoder()


class _Child:
    """A member of an object, or an item of an array: where it begins, and where its value begins and ends."""

    __slots__ = ("key", "start", "value", "end")

    def __init__(self, key: str | int, start: int, value: int, end: int) -> None:
        self.key = key
        self.start = start
        self.value = value
        self.end = end


def load(text: str) -> Any:
    """Raises ValueError where it is no JSON, or nothing that has members."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("its value is no object")
    return value


def put(text: str, path: Path, value: object) -> str:
    """With that value at the path; objects on the way are made where they are missing."""
    here, at = _deepest(text, path)
    if at == len(path):
        start, end = here
        return text[:start] + _rendered(text, value, _indent_of_line(text, start), _is_compact(text)) + text[end:]
    for key in reversed(path[at + 1 :]):
        value = {key: value}
    return _insert(text, here[0], json.dumps(path[at], ensure_ascii=False) + ": ", value)


def append(text: str, path: Path, value: object) -> str:
    """With that value as the last item of the array at the path, which is made where it is missing."""
    (start, _), at = _deepest(text, path)
    return _insert(text, start, "", value) if at == len(path) else put(text, path, [value])


def drop(text: str, path: Path) -> str:
    """Without what is at the path, which must be there."""
    parent, _ = _deepest(text, path[:-1])
    children = list(_children(text, parent[0]))
    at = max(number for number, child in enumerate(children) if child.key == path[-1])
    if len(children) == 1:
        return text[: parent[0] + 1] + text[parent[1] - 1 :]
    if at == 0:
        return text[: children[0].start] + text[children[1].start :]
    return text[: children[at - 1].end] + text[children[at].end :]


def _deepest(text: str, path: Path) -> tuple[tuple[int, int], int]:
    """The span of the value as far along the path as there is one, and how far that is."""
    start = _skip(text, 0)
    span = (start, _DECODER.raw_decode(text, start)[1])
    for at, key in enumerate(path):
        found = [child for child in _children(text, span[0]) if child.key == key]
        if not found:
            return span, at
        span = (found[-1].value, found[-1].end)
    return span, len(path)


def _children(text: str, start: int) -> Iterator[_Child]:
    """Of the object or array that begins there; of anything else none."""
    if text[start] not in "{[":
        return
    at, number = _skip(text, start + 1), 0
    while text[at] not in "}]":
        begin: int = at
        key: str | int = number
        if text[start] == "{":
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)  # the colon
        value = at
        _, at = _DECODER.raw_decode(text, at)
        yield _Child(key, begin, value, at)
        at, number = _skip(text, at), number + 1
        if text[at] == ",":
            at = _skip(text, at + 1)


def _insert(text: str, start: int, label: str, value: object) -> str:
    """As the last child of the object or array that begins there, laid out like its brothers."""
    children = list(_children(text, start))
    if not children:
        return _insert_first(text, start, label, value)
    last = children[-1]
    before = text[children[-2].end if len(children) > 1 else start + 1 : last.start].rpartition(",")[2]
    is_compact = "\n" not in before
    indent = before.rpartition("\n")[2]
    new = label + _rendered(text, value, indent, is_compact)
    between = "," + (before or " " * (": " in text or ", " in text))
    return text[: last.end] + between + new + text[last.end :]


def _insert_first(text: str, start: int, label: str, value: object) -> str:
    close = _skip(text, start + 1)
    if _is_compact(text):
        return text[: start + 1] + label + _rendered(text, value, "", True) + text[close:]
    outer = _indent_of_line(text, start)
    inner, line = outer + _unit(text), _line_end(text)
    new = label + _rendered(text, value, inner, False)
    return f"{text[: start + 1]}{line}{inner}{new}{line}{outer}{text[close:]}"


def _rendered(text: str, value: object, indent: str, is_compact: bool) -> str:
    if is_compact:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text)).split("\n")
    return (_line_end(text) + indent).join(lines)


def _is_compact(text: str) -> bool:
    """Whether it is on one line and not empty."""
    return "\n" not in text.strip() and text.strip() != "{}"


def _unit(text: str) -> str:
    """What one step of indentation is."""
    found = re.search(r"[{\[][ \t\r]*\n([ \t]+)\S", text)
    return found[1] if found and _indent_of_line(text, found.start()) == "" else "  "


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_of_line(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def written_at(text: str, path: Path) -> str | None:
    """What is written at the path, as it is; None where nothing is."""
    (start, end), at = _deepest(text, path)
    return text[start:end] if at == len(path) else None


def is_empty(written: str) -> bool:
    """Whether it is an object or array without anything in it."""
    return written[:1] in ("{", "[") and not written[1:-1].strip(_BLANKS)


def put_back(text: str, path: Path, was: str | None) -> str:
    """With what was once written at the path, which must be there; without it where that is None."""
    if was is None:
        return drop(text, path)
    (start, end), _ = _deepest(text, path)
    return text[:start] + was + text[end:]


def is_bare(text: str) -> bool:
    """Whether there is nothing in it: blanks, or an object that is empty."""
    inner = text.strip(_BLANKS)
    return not inner or (inner[0] == "{" and is_empty(inner))


def filled(text: str) -> str:
    """An object, also for a file with nothing but blanks in it."""
    return text if text.strip(_BLANKS) else "{}\n"
