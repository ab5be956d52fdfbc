"""The daemon's log, for operators: one line per turn of events. Never environment values, never output."""

from __future__ import annotations

import os
import sys
import time

#: Beyond this the log is begun anew; the one before is kept beside it.
_LARGEST = 1 << 20


def note(event: str, **fields: object) -> None:
    """One line: when, what, and the fields. A log that cannot be written stops nobody."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    told = "".join(f" {name}={_shown(value)}" for name, value in fields.items())
    try:
        sys.stderr.write(f"{stamp} {event}{told}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def open_log(path: str) -> None:
    """Let everything that goes to stderr go to this file, also of processes that we start and give no other."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.dup2(fd, 2)
    os.close(fd)


def bound(path: str) -> None:
    """Keep the log from growing for ever, if stderr is that log. The file stays the same, so everyone may go on."""
    try:
        here, there = os.fstat(2), os.stat(path)
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino) or there.st_size <= _LARGEST:
            return
        _copy(path, f"{path}.1")
        os.truncate(path, 0)
    except OSError:
        return


def _copy(source: str, target: str) -> None:
    with open(source, "rb") as old, open(target, "wb", opener=_private) as new:
        old.seek(-_LARGEST, os.SEEK_END)
        new.write(old.read(_LARGEST))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _shown(value: object) -> str:
    text = str(value)
    return text if text.isprintable() and " " not in text and text else repr(text)
