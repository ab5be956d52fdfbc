"""Where this machine's cgroup controllers sit: in the v2 tree, in hierarchies of their own (v1), or nowhere for us.

Many machines are mixed: a v2 tree without controllers beside v1 hierarchies that have them. Each controller is looked
for on its own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from holdfast_keeper import kernel
from holdfast_keeper.groups import Groups, join, outside_command_groups

#: What can be limited, with the file that each version sets the limit by.
FILES = {
    "memory": {1: "memory.limit_in_bytes", 2: "memory.max"},
    "cpu": {1: "cpu.cfs_quota_us", 2: "cpu.max"},
    "pids": {1: "pids.max", 2: "pids.max"},
}


class ControllerRoot(NamedTuple):
    """Where groups with one controller can be made."""

    version: int
    groups: Groups


def find(name: str) -> dict[str, ControllerRoot]:
    """The seat of every controller that we may use; `name` is what our directory in each of them is called."""
    roots = {controller: root_of for controller in FILES if (root_of := _v1_root(controller, name)) is not None}
    wanted = [controller for controller in FILES if controller not in roots]
    return {**roots, **_v2_roots(wanted, f"{name}-limited")}


def were_used(name: str) -> bool:
    """Whether directories of that name were made, by us or by a predecessor."""
    places = [outside_command_groups(own) for _, own in own_groups()]
    names = [f"{place}/{name}" for place in places] + [f"{base}/{name}-limited" for base in _v2_bases()]
    return any(map(os.path.isdir, names))


def leave_command_groups() -> None:
    """Whoever started us may itself be held: get out of its groups, or we would end with it and share its limits."""
    for own in (Groups.mount_and_own()[1], *(own for _, own in own_groups())):
        if own is not None and own != outside_command_groups(own):
            with contextlib.suppress(OSError):
                join(outside_command_groups(own))


def own_groups() -> Iterator[tuple[str, str]]:
    """Every v1 hierarchy by its controllers (`cpu`, or `cpu,cpuacct`), with the directory of our group in it."""
    mounts = dict(_v1_mounts())
    with open("/proc/self/cgroup") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            for mounted, (point, root) in mounts.items():
                if controllers and set(controllers.split(",")) <= mounted:
                    below = path.removeprefix(root.rstrip("/"))
                    yield controllers, (point + below).rstrip("/")


def _v1_mounts() -> Iterator[tuple[frozenset[str], tuple[str, str]]]:
    """The controllers of each hierarchy, with its mount point and what of it is mounted there."""
    with open("/proc/self/mountinfo") as file:
        for line in file:
            fields, _, kind = line.rstrip("\n").partition(" - ")
            if kind.startswith("cgroup "):
                words = fields.split()
                yield frozenset(kind.split()[-1].split(",")), (words[4].rstrip("/"), words[3])


def _v1_root(controller: str, name: str) -> ControllerRoot | None:
    for controllers, own in own_groups():
        if controller in controllers.split(","):
            root = f"{outside_command_groups(own)}/{name}"
            return ControllerRoot(1, Groups(root)) if _has(root, FILES[controller][1]) else None
    return None


def _v2_roots(wanted: list[str], name: str) -> dict[str, ControllerRoot]:
    """A process is in one group of the v2 tree, so all that it has to offer must be in one place: the best there is."""
    best: list[str] = []
    chosen: Groups | None = None
    for base in _v2_bases() if wanted else ():
        offered = [controller for controller in wanted if _enable(base, name, controller)]
        if len(offered) > len(best):
            if chosen is not None:
                chosen.close()
            best, chosen = offered, Groups(f"{base}/{name}")
        elif base != (chosen and os.path.dirname(str(chosen.root))):
            Groups(f"{base}/{name}").close()
        if len(best) == len(wanted):
            break
    return {controller: ControllerRoot(2, chosen) for controller in best} if chosen is not None else {}


def _v2_bases() -> Iterator[str]:
    """Our own group, and those above it as far as they are ours to make groups in."""
    mount, own = Groups.mount_and_own()
    if mount is None or own is None:
        return
    base = outside_command_groups(own)
    while base.startswith(mount) and os.access(base, os.W_OK):
        yield base
        if base == mount:
            return
        base = os.path.dirname(base)


def _enable(base: str, name: str, controller: str) -> bool:
    """Whether groups in base/name have the controller, after it was handed down where that is up to us."""
    root = f"{base}/{name}"
    try:
        if controller not in _words(f"{base}/cgroup.controllers"):
            return False
        if controller not in _words(f"{base}/cgroup.subtree_control"):
            write(f"{base}/cgroup.subtree_control", f"+{controller}")
        os.makedirs(root, exist_ok=True)
        write(f"{root}/cgroup.subtree_control", f"+{controller}")
    except OSError:
        return False
    return _has(root, FILES[controller][2])


def _has(root: str, file: str) -> bool:
    """Whether a group made in this directory can be limited by this file."""
    probe = f"{root}/probe-{os.getpid()}"
    try:
        os.makedirs(probe, exist_ok=True)
        usable = os.access(f"{probe}/{file}", os.W_OK) and os.access(f"{probe}/cgroup.procs", os.W_OK)
        os.rmdir(probe)
    except OSError:
        return False
    return usable


def _words(path: str) -> list[str]:
    return kernel.read(path).decode().split()


def write(path: str, text: str) -> None:
    """One write to a file of the kernel's. Raises OSError when it does not take that."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
