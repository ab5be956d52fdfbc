"""How much processor time a tree of processes has used. Reads files and is meant for a thread."""

from __future__ import annotations

import os
from collections.abc import Collection

_TICK = 1 / os.sysconf("SC_CLK_TCK")
#: utime, stime, and those of children that were waited for, counted from behind the name in /proc/PID/stat.
_TIMES = slice(11, 15)


def cpu_seconds(pids: Collection[int], group: str | None) -> float | None:
    """Seconds of processor time, user and system; None when nobody can tell.

    Of a cgroup it is all that was ever used in it, to the microsecond. Without one it is what these processes and the
    children they waited for have used, in ticks: it may shrink when one of them ends.
    """
    used = _of_group(group) if group is not None else None
    return _of_processes(pids) if used is None else used


def _of_group(group: str) -> float | None:
    try:
        with open(f"{group}/cpu.stat", "rb") as file:
            for line in file:
                name, _, value = line.partition(b" ")
                if name == b"usage_usec":
                    return int(value) / 1e6
    except (OSError, ValueError):
        return None
    return None


def _of_processes(pids: Collection[int]) -> float | None:
    ticks = [found for found in map(_ticks, pids) if found is not None]
    return sum(ticks) * _TICK if ticks else None


def _ticks(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return sum(map(int, file.read().rpartition(b")")[2].split()[_TIMES]))
    except (OSError, ValueError):
        return None
