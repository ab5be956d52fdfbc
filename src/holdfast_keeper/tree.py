"""The tree of a held command: the command and everything it started, and how to signal them.

With a cgroup, the kernel knows the members. Without, they are found in /proc: descendants, the command's session and
process group, and HOLDFAST_ID in the environment. No process is signalled by its pid alone: a pidfd is opened and the
start time compared.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from holdfast_keeper import kernel


class TreeMember(NamedTuple):
    pid: int
    start: int


class Tree(NamedTuple):
    """A held command with everything it spawned."""

    process_id: str
    leader: TreeMember
    group: str | None
    """Its cgroup, where it has one."""
    boot: str
    """The boot id of the machine when it ran."""

    def members(self) -> list[TreeMember]:
        """The living members, the leader first if it lives."""
        if self.boot != kernel.boot_id():
            return []
        found = set(_in_group(self.group)) if self.group is not None else set(_in_proc(self))
        return sorted(found, key=lambda member: (member != self.leader, member.start, member.pid))

    def force(self) -> None:
        """Send SIGKILL to every member. Without cgroup.kill, a fork at this moment may escape: call it again."""
        if self.group is not None and _kill_group(self.group):
            return
        for member in self.members():
            send(member, signal.SIGKILL)


def send(member: TreeMember, signum: int) -> bool:
    """Signal exactly this process. Returns whether it was sent."""
    pidfd = kernel.open_process(*member)
    if pidfd is None:
        return False
    try:
        signal.pidfd_send_signal(pidfd, signum)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(pidfd)
    return True


def is_alive(member: TreeMember) -> bool:
    found = kernel.stat(member.pid)
    return found is not None and found.start == member.start and not found.is_dead


def in_process_group(members: Iterable[TreeMember], pgrp: int) -> list[TreeMember]:
    found = ((member, kernel.stat(member.pid)) for member in members)
    return [member for member, stat in found if stat is not None and stat.pgrp == pgrp]


def _in_group(group: str) -> Iterator[TreeMember]:
    try:
        if b"populated 0" in kernel.read(f"{group}/cgroup.events"):
            return
    except OSError:
        return
    for directory, _, _ in os.walk(group):
        for pid in _pids_in(f"{directory}/cgroup.procs"):
            stat = kernel.stat(pid)
            if stat is not None and not stat.is_dead:
                yield TreeMember(stat.pid, stat.start)


def _pids_in(path: str) -> list[int]:
    try:
        with open(path) as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def _kill_group(group: str) -> bool:
    try:
        with open(f"{group}/cgroup.kill", "w") as file:
            file.write("1")
    except OSError:
        return False
    return True


def _in_proc(tree: Tree) -> Iterator[TreeMember]:
    stats = [stat for stat in map(kernel.stat, _pids()) if stat is not None]
    leader = tree.leader
    below = _descendants(stats, leader)
    mark = f"HOLDFAST_ID={tree.process_id}".encode()
    # Once the leader is reaped, its pid may be reused, and with it the ids of its session and process group.
    has_leader = any((stat.pid, stat.start) == leader for stat in stats)
    for stat in stats:
        if stat.is_dead or stat.start < leader.start:
            continue
        is_near = stat.pid in below or (has_leader and leader.pid in (stat.session, stat.pgrp))
        if is_near or _is_marked(stat.pid, mark):
            yield TreeMember(stat.pid, stat.start)


def _descendants(stats: list[kernel.Stat], leader: TreeMember) -> set[int]:
    children: dict[int, list[int]] = {}
    for stat in stats:
        children.setdefault(stat.ppid, []).append(stat.pid)
    below: set[int] = set()
    ahead = [stat.pid for stat in stats if (stat.pid, stat.start) == leader]
    while ahead:
        pid = ahead.pop()
        below.add(pid)
        ahead.extend(children.get(pid, ()))
    return below


def _is_marked(pid: int, mark: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())
