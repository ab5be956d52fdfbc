"""CPU time and memory of processes, from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and system time so far, of all their threads, to the nanosecond."""
    return (
        sum(_on_cpu(f"/proc/{pid}/task/{task}/schedstat") for pid in pids for task in os.listdir(f"/proc/{pid}/task"))
        / 1e9
    )


def own_bytes(pids: Iterable[int]) -> int:
    """Memory that would be free if they were gone: what is theirs alone, and what they share among themselves, once."""
    return sum(_anonymous_share(f"/proc/{pid}/smaps_rollup") for pid in pids)


def children(pid: int, name: str) -> list[int]:
    """The children of a process that go by a name."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [child for child in map(int, file.read().split()) if _name(child) == name]


def _on_cpu(path: str) -> int:
    with open(path, encoding="ascii") as file:
        return int(file.read().split()[0])


def _anonymous_share(path: str) -> int:
    with open(path, encoding="ascii") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss_Anon:"))


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:  # it ended meanwhile
        return ""
