"""Who is who among the processes of this machine. Reads /proc and is meant for a thread."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import NamedTuple

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Seen(NamedTuple):
    """One process, as /proc has it at this moment."""

    pid: int
    ppid: int
    session: int
    name: str
    cpu_seconds: float
    """Its own, without that of its children."""
    rss_bytes: int


def look(pid: int) -> Seen | None:
    """Who goes by that number and is alive; None when nobody does."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            head, _, tail = file.read().rpartition(b")")
    except OSError:
        return None
    fields = tail.split()
    if not fields or fields[0] in (b"Z", b"X", b"x"):
        return None
    name = head.partition(b"(")[2].decode(errors="replace")
    spent = (int(fields[11]) + int(fields[12])) * _TICK
    return Seen(pid, int(fields[1]), int(fields[3]), name, spent, int(fields[21]) * _PAGE)


def look_at(pids: Collection[int]) -> list[Seen]:
    """Those of them that are alive, in the order given."""
    return [seen for seen in map(look, pids) if seen is not None]


def trees(leaders: Collection[int]) -> dict[int, list[int]]:
    """For each of these processes itself, its descendants, and who is in its session: one look at all there are."""
    everyone = look_at(list(_pids()))
    children: dict[int, list[int]] = {}
    sessions: dict[int, list[int]] = {}
    for seen in everyone:
        children.setdefault(seen.ppid, []).append(seen.pid)
        sessions.setdefault(seen.session, []).append(seen.pid)
    return {leader: _below(leader, children, sessions) for leader in leaders}


def _below(leader: int, children: dict[int, list[int]], sessions: dict[int, list[int]]) -> list[int]:
    found: dict[int, None] = {}
    ahead = [leader, *sessions.get(leader, ())]
    while ahead:
        pid = ahead.pop()
        if pid not in found:
            found[pid] = None
            ahead += children.get(pid, ())
    return list(found)


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())
