"""How much memory a tree of processes uses, and which processes it is. Reads files and is meant for a thread."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import NamedTuple

_KIB = 1024


class Memory(NamedTuple):
    now: int
    peak: int


def pids_in(group: str) -> list[int]:
    """Who is in a cgroup of the v2 tree and those below it."""
    found: list[int] = []
    for directory, _, _ in os.walk(group):
        try:
            found += map(int, _read(f"{directory}/cgroup.procs").split())
        except OSError:  # it was removed, or is not for processes
            continue
    return found


def memory_of(pids: Collection[int]) -> Memory | None:
    """Resident memory of all of them together, and the most that one of them ever had; None when all are gone."""
    seen = [memory for memory in map(_resident, pids) if memory is not None]
    if not seen:
        return None
    return Memory(sum(memory.now for memory in seen), max(memory.peak for memory in seen))


def charged_to(group: str) -> Memory | None:
    """What counts against a memory limit, but for files that could be dropped at once; None when nobody can tell."""
    for now, peak, droppable in (
        ("memory.current", "memory.peak", b"inactive_file"),
        ("memory.usage_in_bytes", "memory.max_usage_in_bytes", b"total_inactive_file"),
    ):
        try:
            used = int(_read(f"{group}/{now}"))
            words = _read(f"{group}/memory.stat").split()
        except (OSError, ValueError):
            continue
        used -= int(words[words.index(droppable) + 1]) if droppable in words else 0
        return Memory(max(0, used), _peak(f"{group}/{peak}", used))
    return None


def _peak(path: str, at_least: int) -> int:
    try:
        return max(at_least, int(_read(path)))
    except (OSError, ValueError):  # an older kernel keeps none
        return at_least


def _resident(pid: int) -> Memory | None:
    try:
        status = _read(f"/proc/{pid}/status")
    except OSError:
        return None
    now, peak = _kib(status, b"\nVmRSS:"), _kib(status, b"\nVmHWM:")
    return Memory(now, peak) if now else None  # a zombie has no memory any more


def _kib(status: bytes, name: bytes) -> int:
    at = status.find(name)
    return int(status[at + len(name) :].split(None, 1)[0]) * _KIB if at >= 0 else 0


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 1 << 18)
    finally:
        os.close(fd)
