"""The file of a project: find it, read it, and name a position in it."""

from __future__ import annotations

import os
import re
import stat
from typing import NamedTuple

from holdfast.errors import BadValue, Denied, HoldfastError, NotFound

NAMES = ("holdfast.toml", "Procfile")
#: A project file is never larger.
LARGEST = 1 << 20


class Source(NamedTuple):
    """A file that was read."""

    path: str
    text: str

    @property
    def directory(self) -> str:
        return os.path.dirname(self.path)

    def error(self, keys: tuple[str, ...], why: str, next: str) -> BadValue:
        """The error for the value at `keys`, with the file, the line where it can be found, and the key."""
        line = line_of(self.text, keys)
        place = f"{self.path}:{line}" if line else self.path
        return BadValue(f"{place}: {'.'.join(key[:80] for key in keys)} {why}".replace(":  ", ": "), next=next)


def find(start: str | None = None) -> str:
    """The nearest project file, in `start` (the current directory) or above. Raises NotFound, Denied."""
    first = directory = os.path.abspath(start or os.curdir)
    while True:
        for name in NAMES:
            path = os.path.join(directory, name)
            if os.path.isfile(path):
                _check_owner(path, is_above=directory != first)
                return path
        if directory == os.path.dirname(directory):
            raise NotFound(f"no {' or '.join(NAMES)} in {first} or above", next="write one, or name it: -f FILE")
        directory = os.path.dirname(directory)


def read(path: str) -> Source:
    """Read a regular text file. Raises NotFound, BadValue."""
    path = os.path.abspath(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}", next="check the name") from None
    except (OSError, ValueError) as failed:
        raise _unreadable(path, failed) from failed
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise BadValue(f"{path} is no file", next="name a text file")
    with open(fd, "rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise BadValue(f"{path} is larger than {LARGEST} bytes", next="name a text file")
    try:
        return Source(path, data.decode())
    except UnicodeDecodeError as broken:
        line = data.count(b"\n", 0, broken.start) + 1
        raise BadValue(f"{path}:{line}: is not UTF-8", next="save it as UTF-8") from None


def line_of(text: str, keys: tuple[str, ...]) -> int | None:
    """The line that names the value at `keys`, or else the table around it: found by regular expressions."""
    table: tuple[str, ...] = ()
    best, found = 0, None
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.match(line):
            here = table = _keys(header[1])
        elif assigned := _ASSIGNED.match(line):
            here = table + _keys(assigned[1])
        else:
            continue
        shared = min(len(here), len(keys))
        if shared > best and here[:shared] == keys[:shared]:
            best, found = shared, number
    return found


_KEY = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')"
_HEADER = re.compile(rf"\s*\[\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*\]")
_ASSIGNED = re.compile(rf"\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*=")
_ONE_KEY = re.compile(_KEY)


def _keys(text: str) -> tuple[str, ...]:
    return tuple(key.strip("\"'") for key in _ONE_KEY.findall(text))


def _check_owner(path: str, is_above: bool) -> None:
    """Refuse a file of another user that was found in a parent directory: it would run their commands."""
    owner = os.stat(path).st_uid
    if is_above and owner not in (0, os.geteuid()):
        raise Denied(f"{path} belongs to another user", next=f"if you trust it: -f {path}")


def _unreadable(path: str, failed: Exception) -> HoldfastError:
    why = failed.strerror if isinstance(failed, OSError) else failed
    return BadValue(f"cannot read {path!r:.300}: {why}", next="check the file and its permissions")
