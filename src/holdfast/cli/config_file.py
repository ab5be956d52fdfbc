"""Changes one key of a config file in place: comments, order and layout of everything else stay."""

from __future__ import annotations

import re
import tomllib

from holdfast.errors import HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_TABLE = re.compile(r"\s*\[")
_KEY = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*=""")


def changed(text: str, key: str, value: str | None) -> str:
    """The text with `key = value`, a value in TOML, or without the key. Raises HoldfastError if it is beyond this."""
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    statements = list(_statements(lines))
    for name, begin, end in statements:
        if name == key:
            new = [] if value is None else [f"{key} = {value}{_comment(lines[begin:end])}\n"]
            return _checked(text, "".join([*lines[:begin], *new, *lines[end:]]), key, value)
    if value is None:
        return text
    at = statements[-1][2] if statements else _end_of_head(lines)
    new = [f"{key} = {value}\n"]
    if not statements and at < len(lines):
        new.append("\n")
    return _checked(text, "".join([*lines[:at], *new, *lines[at:]]), key, value)


def _statements(lines: list[str]) -> Iterator[tuple[str, int, int]]:
    """The keys before the first table, each with its first line and the line behind it."""
    at = 0
    while at < len(lines) and not _TABLE.match(lines[at]):
        found = _KEY.match(lines[at])
        end = at + 1
        if found is not None:
            while end < len(lines) and not _is_whole("".join(lines[at:end])):
                end += 1
            yield next(name for name in found.groups() if name is not None), at, end
        at = end


def _end_of_head(lines: list[str]) -> int:
    """Where the first key goes: before the first table and the comment above it."""
    at = next((at for at, line in enumerate(lines) if _TABLE.match(line)), len(lines))
    while 0 < at < len(lines) and lines[at - 1].lstrip().startswith("#"):
        at -= 1
    return at


def _is_whole(text: str) -> bool:
    try:
        tomllib.loads(text)
    except ValueError:
        return False
    return True


def _comment(lines: list[str]) -> str:
    """The comment behind a value on one line, with the space before it."""
    (line, *more) = lines
    for at in [at for at, character in enumerate(line) if character == "#" and not more]:
        if _is_whole(line[:at]):
            return f"  {line[at:].rstrip()}"
    return ""


def _checked(before: str, after: str, key: str, value: str | None) -> str:
    """The new text, if it says exactly what was asked for."""
    wanted = {name: one for name, one in tomllib.loads(before).items() if name != key}
    if value is not None:
        wanted |= tomllib.loads(f"{key} = {value}")
    if not _is_whole(after) or tomllib.loads(after) != wanted:
        raise HoldfastError(f"{key} cannot be changed without changing more of the file", next="edit the file by hand")
    return after
