"""Where each cgroup controller can be used: in the v2 tree, in a v1 hierarchy of its own, or not at all.

Many machines are mixed: a v2 tree without controllers beside v1 hierarchies that have them. Each controller is looked
up separately.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from holdfast_keeper import kernel
from holdfast_keeper.groups import Groups, join, outside_command_groups

#: The controllers, with the file that sets the limit in each cgroup version.
FILES = {
    "memory": {1: "memory.limit_in_bytes", 2: "memory.max"},
    "cpu": {1: "cpu.cfs_quota_us", 2: "cpu.max"},
    "pids": {1: "pids.max", 2: "pids.max"},
}


class ControllerRoot(NamedTuple):
    """Where cgroups with one controller can be created."""

    version: int
    groups: Groups


def find(name: str) -> dict[str, ControllerRoot]:
    """The root of every controller that we may use; `name` is the name of our directory in each."""
    roots = {controller: found for controller in FILES if (found := _v1_root(controller, name)) is not None}
    missing = [controller for controller in FILES if controller not in roots]
    return {**roots, **_v2_roots(missing, f"{name}-limited")}


def were_used(name: str) -> bool:
    """Whether there are directories of that name."""
    bases = [outside_command_groups(own) for _, own in own_groups()]
    names = [f"{base}/{name}" for base in bases] + [f"{base}/{name}-limited" for base in _v2_bases()]
    return any(map(os.path.isdir, names))


def leave_command_groups() -> None:
    """Leave the cgroups of a held command that started us: we would be killed with it, and share its limits."""
    for own in (Groups.mount_and_own()[1], *(own for _, own in own_groups())):
        if own is not None and own != outside_command_groups(own):
            with contextlib.suppress(OSError):
                join(outside_command_groups(own))


def own_groups() -> Iterator[tuple[str, str]]:
    """Every v1 hierarchy by its controllers (`cpu`, or `cpu,cpuacct`), with the directory of our cgroup in it."""
    mounts = dict(_v1_mounts())
    with open("/proc/self/cgroup") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            for mounted, (point, root) in mounts.items():
                if controllers and set(controllers.split(",")) <= mounted:
                    below = path.removeprefix(root.rstrip("/"))
                    yield controllers, (point + below).rstrip("/")


def _v1_mounts() -> Iterator[tuple[frozenset[str], tuple[str, str]]]:
    """The controllers of each hierarchy, with its mount point and the root that is mounted there."""
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


def _v2_roots(missing: list[str], name: str) -> dict[str, ControllerRoot]:
    """A process is in one cgroup of the v2 tree, so all controllers are used in one: the one that offers most."""
    best: list[str] = []
    chosen: Groups | None = None
    for base in _v2_bases() if missing else ():
        offered = [controller for controller in missing if _enable(base, name, controller)]
        if len(offered) > len(best):
            if chosen is not None:
                chosen.close()
            best, chosen = offered, Groups(f"{base}/{name}")
        elif base != (chosen and os.path.dirname(str(chosen.root))):
            Groups(f"{base}/{name}").close()
        if len(best) == len(missing):
            break
    return {controller: ControllerRoot(2, chosen) for controller in best} if chosen is not None else {}


def _v2_bases() -> Iterator[str]:
    """Our own cgroup, and those above it as far as we may create cgroups there."""
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
    """Enable a controller for cgroups in base/name. Returns whether they have it."""
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
    """Whether a cgroup created in this directory can be limited by this file."""
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
    """One write to a file of the kernel. Raises OSError when it refuses the value."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
