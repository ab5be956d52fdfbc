"""A Procfile: `name: command` a line. No I/O.

As with other tools that read it, `.env` beside it is read if it is there, and every process gets a `PORT` of its own:
5000, 5100, … in the order of the lines, counted from PORT in `.env` or the caller's environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from holdfast.project.source import Source

_LINE = re.compile(r"([A-Za-z0-9_-]+)\s*:\s*(\S.*)")
_FIRST_PORT = 5000
_STEP = 100
_LAST_PORT = 65535


def parse(source: Source) -> dict[str, str]:
    """Commands by name. Raises BadValue."""
    found: dict[str, str] = {}
    for number, line in enumerate(source.text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        entry = _LINE.fullmatch(line)
        if entry is None:
            raise _wrong(source, number, "is not NAME: COMMAND", "write a line as web: python app.py")
        if entry[1] in found:
            raise _wrong(source, number, f"{entry[1]} is there twice", "give one of them another name")
        found[entry[1]] = entry[2]
    return found


def ports(names: list[str], env: Mapping[str, str]) -> dict[str, str]:
    """PORT by name; none where they would go beyond the last."""
    text = env.get("PORT", "")
    first = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else _FIRST_PORT
    given = {name: first + at * _STEP for at, name in enumerate(names)}
    return {name: str(port) for name, port in given.items() if port <= _LAST_PORT}


def _wrong(source: Source, line: int, why: str, next: str) -> Exception:
    from holdfast.errors import BadValue

    return BadValue(f"{source.path}:{line}: {why}", next=next)
