"""Changes of one table in a TOML text that leave every other line of it as it is. Pure.

The edit is made on lines. Then both texts are parsed: what else changed by it, say for a header in the middle of a long
string, is refused.
"""

from __future__ import annotations

import json
import re
import tomllib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeAlias

    Table: TypeAlias = dict[str, Any]
    Path: TypeAlias = tuple[str, ...]

_HEADER = re.compile(r"\s*\[")


def load(text: str) -> Table:
    """Raises ValueError where it is no TOML."""
    return tomllib.loads(text)


def find(text: str, path: Path) -> Table | None:
    """The table at that path. Raises ValueError where something else is there, or on the way."""
    at: Any = load(text)
    for depth, key in enumerate(path, 1):
        if key not in at:
            return None
        at = at[key]
        if not isinstance(at, dict):
            raise ValueError(f"its {'.'.join(path[:depth])} is no table")
    return dict(at)


def put(text: str, path: Path, values: Mapping[str, object]) -> str:
    """With these values in the table; others that it has stay. Raises ValueError where it is written in another way."""
    table = find(text, path)
    if table is None:
        made = _appended(text, path, values)
    else:
        wanted = {key: value for key, value in values.items() if table.get(key) != value}
        made = _replaced(text, path, wanted)
    return _checked(text, made, path, {**(table or {}), **values})


def drop(text: str, path: Path) -> str:
    """Without the table and those below it. Raises ValueError where it is written in another way."""
    lines = text.splitlines(keepends=True)
    start, end = _span(lines, path, with_children=True)
    while start > 0 and not lines[start - 1].strip():
        start -= 1
    made = "".join(lines[:start]) + "".join(lines[end:])
    return _checked(text, made, path, None)


def _appended(text: str, path: Path, values: Mapping[str, object]) -> str:
    before = text if not text or text.endswith("\n") else f"{text}\n"
    gap = "\n" if before.strip() else ""
    rows = "".join(f"{key} = {_value(value)}\n" for key, value in values.items())
    return f"{before}{gap}[{'.'.join(path)}]\n{rows}"


def _replaced(text: str, path: Path, values: Mapping[str, object]) -> str:
    lines = text.splitlines(keepends=True)
    if not values:
        return text
    start, end = _span(lines, path, with_children=False)
    for key, value in values.items():
        row = f"{key} = {_value(value)}\n"
        at = next((at for at in range(start + 1, end) if re.match(rf"\s*{re.escape(key)}\s*=", lines[at])), None)
        if at is None:
            lines.insert(start + 1, row)
            end += 1
        else:
            lines[at] = row
    return "".join(lines)


def _span(lines: list[str], path: Path, with_children: bool) -> tuple[int, int]:
    """From its header to the line behind its last one; what comments the next table is not its own."""
    name = r"\s*\.\s*".join(rf"""["']?{re.escape(key)}["']?""" for key in path)
    own = re.compile(rf"\s*\[\s*{name}\s*\]")
    below = re.compile(rf"\s*\[\[?\s*{name}\s*\.") if with_children else own
    start = next((at for at, line in enumerate(lines) if own.match(line)), None)
    if start is None:
        raise ValueError(f"{'.'.join(path)} is not written as a table of its own")
    end = start + 1
    while end < len(lines) and (not _HEADER.match(lines[end]) or own.match(lines[end]) or below.match(lines[end])):
        end += 1
    while end < len(lines) and end > start + 1 and lines[end - 1].lstrip().startswith("#"):
        end -= 1
    while end < len(lines) and end > start + 1 and not lines[end - 1].strip():
        end -= 1
    return start, end


def _checked(before: str, after: str, path: Path, value: Table | None) -> str:
    """The text after, once it has been seen to differ in that table alone."""
    expected = load(before)
    at = expected
    for key in path[:-1]:
        at = at.setdefault(key, {})
    at.pop(path[-1], None)
    if value is not None:
        at[path[-1]] = value
    if _pruned(expected, path) != _pruned(load(after), path):
        raise ValueError(f"{'.'.join(path)} is written in a way that cannot be changed here")
    return after


def _pruned(table: Table, path: Path) -> Table:
    """Without tables on the way that are empty."""
    if len(path) > 1 and isinstance(table.get(path[0]), dict):
        inner = _pruned(table[path[0]], path[1:])
        table = {**table, path[0]: inner}
        if not inner:
            del table[path[0]]
    return table


def _value(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
