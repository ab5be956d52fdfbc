"""The daemon's log, for operators: one line per entry. Never environment values, never output."""

from __future__ import annotations

import os
import sys
import time

from holdfast import files

#: A log beyond this size is moved to `.1` and begun again.
_LARGEST = 1 << 20


def note(event: str, **fields: object) -> None:
    """One line: time, event and fields. A log that cannot be written is no error."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    shown = "".join(f" {name}={_shown(value)}" for name, value in fields.items())
    try:
        sys.stderr.write(f"{stamp} {event}{shown}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def open_log(path: str) -> None:
    """Send standard error to this file, also that of child processes which inherit it."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.dup2(fd, 2)
    os.close(fd)


def bound(path: str) -> None:
    """Limit the size of the log, if stderr is that log. The file is truncated in place: open descriptors stay valid."""
    try:
        here, there = os.fstat(2), os.stat(path)
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino) or there.st_size <= _LARGEST:
            return
        with open(path, "rb") as old:
            old.seek(-_LARGEST, os.SEEK_END)
            files.replace(f"{path}.1", old.read(_LARGEST))
        os.truncate(path, 0)
    except OSError:
        return


def _shown(value: object) -> str:
    text = str(value)
    return text if text.isprintable() and " " not in text and text else repr(text)
