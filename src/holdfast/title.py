"""What `ps` and `top` show of a process of holdfast. The keeper, which imports nothing of holdfast, has its own."""

from __future__ import annotations

import contextlib
import os

#: The place of the arguments in memory, among the fields of /proc/self/stat behind the name.
_ARGUMENTS = slice(45, 47)


def set_title(role: str, *words: str) -> None:
    """`holdfast: ROLE WORDS…` in place of the command line, as far as that has room; the name is `holdfast-ROLE`."""
    with contextlib.suppress(OSError):
        with open("/proc/self/comm", "w") as file:
            file.write(f"holdfast-{role}")
        with open("/proc/self/stat", "rb") as file:
            begin, end = map(int, file.read().rpartition(b")")[2].split()[_ARGUMENTS])
        title = b""
        for word in (f"holdfast: {role}", *words):
            if len(title) + len(os.fsencode(word)) < end - begin:
                title += os.fsencode(word) + b"\0"
        memory = os.open("/proc/self/mem", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(memory, title.ljust(end - begin, b"\0"), begin)
        finally:
            os.close(memory)
