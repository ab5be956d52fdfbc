"""The daemon's log, for operators: one line per entry. Never environment values, never output."""

from __future__ import annotations

import os
import sys
import time

from holdfast import files

#: A log beyond this size is moved to `.1` and begun again.
_LARGEST = 1 << 20


#: Lines that are written together: of thousands of short commands, each has two.
_PAUSE = 0.05
_unwritten: list[tuple[float, str, dict[str, object]]] = []


def note(event: str, **fields: object) -> None:
    """One line: time, event and fields. A log that cannot be written is no error."""
    _unwritten.append((time.time(), event, fields))
    _write()


def note_soon(event: str, **fields: object) -> None:
    """As note, for what happens often: it is written a moment later. To be called in the event loop."""
    _unwritten.append((time.time(), event, fields))
    if len(_unwritten) == 1:
        from asyncio import get_running_loop  # a daemon that finds another one serving does without it

        get_running_loop().call_later(_PAUSE, _write)


def _write() -> None:
    lines = _unwritten[:]
    del _unwritten[: len(lines)]  # other threads may have added some meanwhile
    try:
        sys.stderr.write("".join([_line(*line) for line in lines]))
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def _line(at: float, event: str, fields: dict[str, object]) -> str:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    shown = "".join(f" {name}={_shown(value)}" for name, value in fields.items())
    return f"{stamp} {event}{shown}\n"


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
