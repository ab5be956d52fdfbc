"""What child.c does, for machines without a C compiler."""

from __future__ import annotations

import os
import sys
import time


def block(line: int) -> bytes:
    form = b"12:00:%02u.%03u INFO worker[%u] request id=%08x status=200 took=%ums\n"
    return b"".join(
        form % (i % 60, i % 1000, i % 16, i * 2654435761 % 2**32, i % 977) for i in range(line, line + 1024)
    )


def put(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def produce(left: int) -> None:
    line = 0
    while left > 0:
        made = block(line)[:left]
        put(made)
        left -= len(made)
        line += 1024


def copy(left: int) -> None:
    made = block(0)
    while left > 0:
        put(made[:left])
        left -= len(made)


def leave(path: str, ms: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    time.sleep(ms / 1000)
    os.write(fd, b"%d" % time.monotonic_ns())
    os._exit(7)


def tick(count: int, ms: int) -> None:
    for _ in range(count):
        time.sleep(ms / 1000)
        os.write(1, b"%d\n" % time.monotonic_ns())


match sys.argv[1:]:
    case ["produce", size]:
        produce(int(size))
    case ["copy", size]:
        copy(int(size))
    case ["leave", path, ms]:
        leave(path, int(ms))
    case ["tick", count, ms]:
        tick(int(count), int(ms))
