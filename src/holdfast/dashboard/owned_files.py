"""Files of plugins and themes: read only where they are regular files below their own directory."""

from __future__ import annotations

import io
import os
import re
import stat
from typing import BinaryIO

from holdfast.errors import BadValue

#: A path below a directory. No part begins with a dot, so there is no way up.
PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}(?:/[A-Za-z0-9_][A-Za-z0-9._-]{0,127}){0,7}")
#: A name of a plugin or a theme.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
LARGEST_FILE = 16 << 20

#: What a browser may load, and as what. Anything else, such as the code of a router, is not served.
MEDIA = {
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".ico": "image/x-icon",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
    ".ttf": "font/ttf",
    ".otf": "font/otf",
    ".wasm": "application/wasm",
}


def read_below(directory: str, path: str, most: int = LARGEST_FILE) -> bytes:
    """The content of a file. Raises BadValue with the reason for anything that is none, or that is elsewhere."""
    with open_below(directory, path, most) as file:
        data = file.read(most + 1)
    if len(data) > most:  # it has grown
        raise _too_large(path, most)
    return data


def open_below(directory: str, path: str, most: int = LARGEST_FILE) -> BinaryIO:
    """As `read_below`, without reading it."""
    if PATH.fullmatch(path) is None:
        raise BadValue(f"{shown(path)} is no path below the directory", next="use letters, digits, _, . and - only")
    try:
        # Not blocking: a FIFO has to be refused, not waited for.
        fd = os.open(os.path.join(directory, path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as failed:
        raise BadValue(f"{path}: {failed.strerror}") from None
    file = io.BufferedReader(io.FileIO(fd))
    try:
        # The opened file is checked, not the path, which may change meanwhile.
        found = os.fstat(fd)
        if not os.readlink(f"/proc/self/fd/{fd}").startswith(os.path.realpath(directory) + "/"):
            raise BadValue(f"{path} is a link that leads out of the directory", next="copy the file into it")
        if not stat.S_ISREG(found.st_mode):
            raise BadValue(f"{path} is not a regular file")
        if found.st_size > most:
            raise _too_large(path, most)
    except BaseException:
        file.close()
        raise
    return file


def _too_large(path: str, most: int) -> BadValue:
    return BadValue(f"{path} has more than {most} bytes", next="make it smaller")


def shown(text: str) -> str:
    """A text of a file, for a message: short, and on one line."""
    return repr(text[:80])
