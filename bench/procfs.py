"""CPU time and memory of processes, from /proc."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and system time so far, of all their threads, to the nanosecond."""
    return (
        sum(_on_cpu(f"/proc/{pid}/task/{task}/schedstat") for pid in pids for task in os.listdir(f"/proc/{pid}/task"))
        / 1e9
    )


def tree_cpu(daemon: int) -> defaultdict[str, float]:
    """User and system seconds so far of a daemon and all below it, by name; of those that ended, as `ended children`.

    To the clock tick. What a child used stays counted after it was reaped.
    """
    seconds = 1 / os.sysconf("SC_CLK_TCK")
    spent: defaultdict[str, float] = defaultdict(float)
    pending = [daemon]
    while pending:
        pid = pending.pop()
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            utime, stime, cutime, cstime = map(int, file.read().rpartition(")")[2].split()[11:15])
        name = "daemon" if pid == daemon else _name(pid).removeprefix("holdfast-")
        spent[name] += (utime + stime) * seconds
        spent["ended children"] += (cutime + cstime) * seconds
        pending += children(pid)
    return spent


def own_bytes(pids: Iterable[int]) -> int:
    """Memory that would be free if they were gone: what is theirs alone, and what they share among themselves, once."""
    return sum(_anonymous_share(f"/proc/{pid}/smaps_rollup") for pid in pids)


def resident_bytes(pid: int) -> int:
    """All memory of it that is in RAM, also what it shares with others."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Rss:"))


def children(pid: int, name: str | None = None) -> list[int]:
    """The children of a process, or those of them that go by a name."""
    found: list[int] = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
            found += map(int, file.read().split())
    return [child for child in found if name in (None, _name(child))]


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
