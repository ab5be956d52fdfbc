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
    from collections.abc import Iterable, Iterator, Mapping
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
        return _checked(text, [_appended(text, path, values)], path, values)
    changed = {key: value for key, value in values.items() if table.get(key) != value}
    lines = _lines(text)
    made = (_replaced(lines, span, changed) for span in _spans(lines, path, with_children=False))
    return _checked(text, made, path, {**table, **values}) if changed else text


def drop(text: str, path: Path) -> str:
    """Without the table and those below it. Raises ValueError where it is written in another way."""
    lines = _lines(text)
    made = (_cut(lines, span) for span in _spans(lines, path, with_children=True))
    return _checked(text, made, path, None)


def _appended(text: str, path: Path, values: Mapping[str, object]) -> str:
    """Behind a line that is blank. A text that ends within a line does so afterwards, by which `_cut` knows it."""
    is_ended = not text or text.endswith("\n")
    gap = "" if not text else "\n" if is_ended else "\n\n"
    rows = "\n".join(f"{key} = {_value(value)}" for key, value in values.items())
    return f"{text}{gap}[{'.'.join(path)}]\n{rows}" + "\n" * is_ended


def _cut(lines: list[str], span: tuple[int, int]) -> str:
    start, end = span
    has_gap = start > 0 and not lines[start - 1].strip()
    before = "".join(lines[: start - has_gap])
    if end == len(lines) and not lines[-1].endswith("\n"):
        before = before.removesuffix("\n")
    return before + "".join(lines[end:])


def _replaced(lines: list[str], span: tuple[int, int], values: Mapping[str, object]) -> str:
    lines, (start, end) = lines.copy(), span
    for key, value in values.items():
        row = f"{key} = {_value(value)}"
        at = next((at for at in range(start + 1, end) if re.match(rf"\s*{re.escape(key)}\s*=", lines[at])), None)
        if at is None:
            lines.insert(start + 1, f"{row}\n")
            end += 1
        else:
            lines[at] = row + "\n" * lines[at].endswith("\n")
    return "".join(lines)


def _lines(text: str) -> list[str]:
    """As TOML has them, with their ends."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _spans(lines: list[str], path: Path, with_children: bool) -> Iterator[tuple[int, int]]:
    """Where it may be, the last place first: a long string may hold what looks like it.

    From its header to the line behind its last one; what comments the next table is not its own.
    """
    name = r"\s*\.\s*".join(rf"""["']?{re.escape(key)}["']?""" for key in path)
    own = re.compile(rf"\s*\[\s*{name}\s*\]")
    below = re.compile(rf"\s*\[\[?\s*{name}\s*\.") if with_children else own
    for start in reversed([at for at, line in enumerate(lines) if own.match(line)]):
        end = start + 1
        while end < len(lines) and (not _HEADER.match(lines[end]) or below.match(lines[end])):
            end += 1
        while end > start + 1 and lines[end - 1].lstrip().startswith("#"):
            end -= 1
        while end > start + 1 and not lines[end - 1].strip():
            end -= 1
        yield start, end


def _checked(before: str, made: Iterable[str], path: Path, value: Mapping[str, object] | None) -> str:
    """The first of the texts that differs in that table alone."""
    expected = _expected(before, path, value)
    for after in made:
        try:
            if _pruned(load(after), path) == expected:
                return after
        except ValueError:
            continue
    raise ValueError(f"{'.'.join(path)} is written in a way that cannot be changed here")


def _expected(before: str, path: Path, value: Mapping[str, object] | None) -> Table:
    expected = load(before)
    at = expected
    for key in path[:-1]:
        at = at.setdefault(key, {})
    at.pop(path[-1], None)
    if value is not None:
        at[path[-1]] = dict(value)
    return _pruned(expected, path)


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
