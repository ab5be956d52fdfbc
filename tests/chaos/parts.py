"""The processes of an instance by role, as /proc has them: find them, kill them, stop them, limit their descriptors."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterable

#: Those that hold the descriptors of commands: with one of them left, nothing is lost.
ROLES = ("daemon", "keeper", "anchor")
EVERY_ROLE = (*ROLES, "fork server", "worker")

_BY_NAME = {"holdfast-keeper": "keeper", "holdfast-anchor": "anchor", "holdfast-fork": "fork server"}
#: The first word of its arguments, for each worker of the daemon; before that, they hold this.
_WORKERS = tuple(f"holdfast: {role}" for role in ("watch", "screen", "sinks", "mcp"))
_WORKER = ".__main__ import main"

FileLimit = tuple[int, int]


def find(home: str, role: str) -> list[int]:
    """The processes that have this role in an instance."""
    return find_all(home)[role]


def find_all(home: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {role: [] for role in EVERY_ROLE}
    workers = []
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        role = _role(pid, home)
        if role == "worker":
            workers.append(pid)
        elif role is not None:
            found[role].append(pid)
    found["worker"] = [pid for pid in workers if parent_of(pid) in found["daemon"]]
    # A command that is being started has the name of the fork server for its first instant.
    found["fork server"] = [pid for pid in found["fork server"] if _role(pid, home) == "fork server"]
    return found


def send_signal(pids: Iterable[int], number: int) -> int:
    """Signal them; returns how many there still were."""
    reached = 0
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
        reached += 1
    return reached


def resume(home: str) -> None:
    """Let all of them go on that are stopped."""
    send_signal([pid for pids in find_all(home).values() for pid in pids], signal.SIGCONT)


def file_limit(pid: int, limit: FileLimit | None = None) -> FileLimit | None:
    """Its limit on open files, after setting it; None where it has ended."""
    try:
        if limit is None:
            return resource.prlimit(pid, resource.RLIMIT_NOFILE)
        return resource.prlimit(pid, resource.RLIMIT_NOFILE, limit)
    except ProcessLookupError:
        return None


def open_files(pid: int) -> int:
    """How many descriptors it has open; 0 where it has ended."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except (FileNotFoundError, ProcessLookupError):
        return 0


def resident_bytes(pid: int) -> int:
    """Its memory that is no other process's, too; 0 where it has ended."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            lines = [line.split() for line in file.read().splitlines()]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line[1]) << 10 for line in lines if line[0] in (b"Private_Clean:", b"Private_Dirty:"))


def parent_of(pid: int) -> int:
    """0 where it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def cgroup_name(pid: int) -> str:
    """The name of the cgroup (v2) that it is in; "" where it has ended."""
    try:
        with open(f"/proc/{pid}/cgroup") as file:
            return next((os.path.basename(line.strip()) for line in file if line.startswith("0::")), "")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _role(pid: int, home: str) -> str | None:
    try:
        return _role_of_living(pid, home)
    except (FileNotFoundError, ProcessLookupError):
        return None  # it ended meanwhile


def _role_of_living(pid: int, home: str) -> str | None:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        words = os.fsdecode(file.read()).split("\0")
    if words[0] == "holdfast: daemon" or "holdfast.daemon" in words:
        with open(f"/proc/{pid}/environ", "rb") as file:
            is_ours = os.fsencode(f"HOLDFAST_HOME={home}") in file.read().split(b"\0")
        return "daemon" if is_ours else None
    with open(f"/proc/{pid}/comm") as file:
        name = file.read().strip()
    if name in _BY_NAME:
        return _BY_NAME[name] if f"{home}/place" in words else None
    return (
        "worker"
        if words[0] in _WORKERS or any(_WORKER in word and "holdfast_keeper" not in word for word in words)
        else None
    )
