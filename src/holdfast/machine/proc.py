"""The processes of this machine, read from /proc. Everything here blocks for a moment and is meant for a thread.

A file of a process that has ended, or that may not be read, counts as empty.
"""

from __future__ import annotations

import binascii
import os
from collections.abc import Collection, Iterator
from functools import cache
from typing import NamedTuple

from holdfast.records import Struct

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_DEAD = (b"Z", b"X", b"x")
#: User and system time, then those of children that were waited for: positions behind the name in /proc/PID/stat.
_TIMES = slice(11, 15)

#: More than any process has. A walk ends there: pids are reused while it goes on.
MOST_GENERATIONS = 256
_LONGEST_COMMAND = 4096


class ProcessInfo(NamedTuple):
    """One living process, as /proc shows it at this moment."""

    pid: int
    ppid: int
    group: int
    session: int
    name: str
    cpu_seconds: float
    """Its own, without that of its children."""
    rss_bytes: int
    start: int
    """In ticks since boot. With boot id and pid it identifies the process: pids are reused."""


class MemoryUse(Struct, frozen=True):
    now: int
    peak: int


class Sudo(Struct, frozen=True):
    """A sudo that runs a helper to ask for a password."""

    pid: int
    start: int
    command: str
    ancestors: list[int]
    """From itself on."""


def read(pid: int | str, name: str, limit: int = 1 << 14) -> bytes:
    """The beginning of a file of a process."""
    try:
        fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, limit)
    except OSError:
        return b""
    finally:
        os.close(fd)


def read_all(pid: int, name: str) -> bytes | None:
    """A whole file of a process; None where it is gone or may not be read."""
    try:
        fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    found = b""
    try:
        while piece := os.read(fd, 1 << 16):
            found += piece
    except OSError:
        return None
    finally:
        os.close(fd)
    return found


def link(path: str) -> str:
    """The target of a link in /proc; empty where there is none."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


@cache
def boot_id() -> str:
    """Identifies this boot of the machine: no process outlives it."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def look(pid: int) -> ProcessInfo | None:
    """The living process with this pid. A zombie is not alive."""
    name, fields = _stat(pid)
    if not fields or fields[0] in _DEAD:
        return None
    used = (int(fields[11]) + int(fields[12])) * _TICK
    ppid, group, session = map(int, fields[1:4])
    return ProcessInfo(
        pid, ppid, group, session, name.decode(errors="replace"), used, int(fields[21]) * _PAGE, int(fields[19])
    )


def look_at(pids: Collection[int]) -> list[ProcessInfo]:
    """Those of them that are alive, in the order given."""
    return [info for info in map(look, pids) if info is not None]


def is_alive(pid: int, start: int | None = None) -> bool:
    """Whether it lives; with `start`, whether it is still the process that started then."""
    info = look(pid)
    return info is not None and start in (None, info.start)


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def ancestors(pid: int) -> Iterator[ProcessInfo]:
    """The process itself, its parent, and so on up to the child of init; nothing when it is dead."""
    for _ in range(MOST_GENERATIONS):
        info = look(pid) if pid > 1 else None
        if info is None:
            return
        yield info
        pid = info.ppid


def trees(leaders: Collection[int]) -> dict[int, list[int]]:
    """For each leader: itself, its descendants, and the members of its session. Reads all processes once."""
    children: dict[int, list[int]] = {}
    sessions: dict[int, list[int]] = {}
    for info in look_at(all_pids()):
        children.setdefault(info.ppid, []).append(info.pid)
        sessions.setdefault(info.session, []).append(info.pid)
    return {leader: _below(leader, children, sessions) for leader in leaders}


def cpu_seconds(pids: Collection[int]) -> float | None:
    """What these processes and the children they waited for have used; None when all are gone.

    Counted in ticks. It may shrink when one of them ends.
    """
    ticks = [sum(map(int, fields[_TIMES])) for _, fields in map(_stat, pids) if fields]
    return sum(ticks) * _TICK if ticks else None


def memory_of(pids: Collection[int]) -> MemoryUse | None:
    """Resident memory of all of them together, and the peak of the largest; None when all are gone."""
    found = [(_kib(status, b"\nVmRSS:"), _kib(status, b"\nVmHWM:")) for status in (read(pid, "status") for pid in pids)]
    found = [memory for memory in found if memory[0]]  # a zombie has no memory any more
    return MemoryUse(sum(now for now, _ in found), max(peak for _, peak in found)) if found else None


def arguments(pid: int) -> list[str]:
    return [os.fsdecode(word) for word in read(pid, "cmdline", 1 << 16).split(b"\0")[:-1]]


def wait_state(pid: int) -> str | None:
    """What the main thread does: its state, and the kernel function that it waits in where that is shown."""
    state = _field(pid, b"State:").decode(errors="replace")
    function = read(pid, "wchan").decode(errors="replace").strip()
    return " ".join(filter(None, [state, f"in {function}" if function not in ("", "0") else ""])) or None


def group_name(place: str) -> str:
    """The directory in which the keeper of a place creates cgroups, in every hierarchy (`holdfast_keeper.cgroups`)."""
    return f"holdfast-{os.getuid()}-{binascii.crc32(os.fsencode(place)):08x}"


def group_member(groups: bytes, name: str) -> str | None:
    """The cgroup in that directory which a process is in; None for none. `groups` is its /proc/PID/cgroup."""
    _, is_there, below = groups.partition(f"/{name}".encode())
    if not is_there:
        return None
    return os.fsdecode(below.split(b"\n", 1)[0].removeprefix(b"-limited").removeprefix(b"/").split(b"/", 1)[0])


def sudo_above(pid: int) -> Sudo | None:
    """The sudo that is the parent of this process; None where the parent is another program.

    Only the system's sudo runs under that name with the rights of root.
    """
    helper = look(pid)
    parent = look(helper.ppid) if helper is not None else None
    if parent is None or parent.name != "sudo" or _field(parent.pid, b"Uid:").split()[1:2] != [b"0"]:
        return None
    words = arguments(parent.pid)[1:]
    if words[:1] == ["-A"]:  # our own helper added it
        del words[0]
    command = " ".join(["sudo", *words])[:_LONGEST_COMMAND]
    return Sudo(parent.pid, parent.start, command, [info.pid for info in ancestors(parent.pid)])


def _stat(pid: int) -> tuple[bytes, list[bytes]]:
    """The name, and the fields behind it. A name may contain spaces and parentheses."""
    head, _, tail = read(pid, "stat").rpartition(b")")
    return head.partition(b"(")[2], tail.split()


def _field(pid: int, name: bytes) -> bytes:
    lines = read(pid, "status").splitlines()
    return next((line[len(name) :].strip() for line in lines if line.startswith(name)), b"")


def _kib(status: bytes, name: bytes) -> int:
    at = status.find(name)
    return int(status[at + len(name) :].split(None, 1)[0]) * 1024 if at >= 0 else 0


def _below(leader: int, children: dict[int, list[int]], sessions: dict[int, list[int]]) -> list[int]:
    found: dict[int, None] = {}
    ahead = [leader, *sessions.get(leader, ())]
    while ahead:
        pid = ahead.pop()
        if pid not in found:
            found[pid] = None
            ahead += children.get(pid, ())
    return list(found)
