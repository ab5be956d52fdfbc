"""Limits on memory, processors and processes of a command's whole tree, by cgroup.

The cgroups exist and have their limits before the command runs. It joins them itself just before exec, so that the
limits hold from its first instruction. A limit that this machine does not support is refused, never ignored.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from holdfast_keeper import kernel
from holdfast_keeper.groups import Groups, join, outside_command_groups, remove

#: The cgroup controller of each limit.
CONTROLLER = {"memory": "memory", "cpus": "cpu", "pids": "pids"}
#: The controllers, with the file that sets the limit in each cgroup version.
FILES = {
    "memory": {1: "memory.limit_in_bytes", 2: "memory.max"},
    "cpu": {1: "cpu.cfs_quota_us", 2: "cpu.max"},
    "pids": {1: "pids.max", 2: "pids.max"},
}
_PERIOD = 100_000

LimitValues = dict[str, Any]
#: The cgroup by controller, as recorded in `born`.
Paths = dict[str, str]


class UnsupportedLimit(Exception):
    """This machine does not support a limit."""


class ProcessLimits:
    """The limits that commands of one place can have. Looked up on first use: most commands have none."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._found: dict[str, ControllerRoot] | None = None

    @property
    def _roots(self) -> dict[str, ControllerRoot]:
        if self._found is None:
            name = self._groups.name
            self._found = find(name) if name is not None else {}
        return self._found

    def find_existing(self) -> bool:
        """Whether the last keeper has left cgroups. If so, they are swept from now on."""
        name = self._groups.name
        return name is not None and were_used(name) and bool(self._roots)

    def describe(self) -> dict[str, Any]:
        """Cgroup version and directory for each limit; None where it is not supported."""
        return {limit: _describe(self._roots.get(controller)) for limit, controller in CONTROLLER.items()}

    def check(self, values: LimitValues) -> None:
        """Raises UnsupportedLimit."""
        missing = [limit for limit in values if CONTROLLER[limit] not in self._roots]
        if missing:
            raise UnsupportedLimit(f"this machine cannot limit {' and '.join(missing)}")

    def make(self, values: LimitValues) -> Paths:
        """New, empty cgroups with these limits. Raises OSError after removing what was created."""
        made: dict[Groups, str] = {}
        paths: Paths = {}
        try:
            for limit, value in values.items():
                root = self._roots[CONTROLLER[limit]]
                if root.groups not in made:
                    made[root.groups] = root.groups.make_or_raise()
                paths[CONTROLLER[limit]] = made[root.groups]
                _set(made[root.groups], root.version, limit, value)
        except OSError:
            remove_groups(paths)
            raise
        return paths

    def sweep(self, kept: set[str]) -> bool:
        """As Groups.sweep."""
        busy = [groups for groups in self._all_groups() if groups.sweep(kept)]
        return bool(busy)

    def close(self) -> None:
        for groups in self._all_groups():
            groups.close()

    def _all_groups(self) -> set[Groups]:
        return {root.groups for root in (self._found or {}).values()}


class Setting(NamedTuple):
    file: str
    value: str
    needed: bool = True
    """Otherwise it is set only where the kernel has the file."""


def settings(version: int, limit: str, value: float) -> list[Setting]:
    """The files to write for a limit, in order."""
    quota = max(1000, int(value * _PERIOD))
    table = {
        ("memory", 1): [
            Setting("memory.limit_in_bytes", str(value)),
            Setting("memory.memsw.limit_in_bytes", str(value), needed=False),
            Setting("memory.swappiness", "0", needed=False),
        ],
        ("memory", 2): [
            Setting("memory.max", str(value)),
            Setting("memory.swap.max", "0", needed=False),
            Setting("memory.oom.group", "1", needed=False),
        ],
        ("cpus", 1): [Setting("cpu.cfs_period_us", str(_PERIOD)), Setting("cpu.cfs_quota_us", str(quota))],
        ("cpus", 2): [Setting("cpu.max", f"{quota} {_PERIOD}")],
    }
    return table.get((limit, version), [Setting("pids.max", str(value))])


def group_of(paths: Paths, otherwise: str | None) -> str | None:
    """The cgroup whose members are the command's tree: the v2 cgroup of a limit, if there is one."""
    for path in paths.values():
        if os.path.exists(f"{path}/cgroup.events"):
            return path
    return otherwise


def remove_groups(paths: Paths) -> None:
    """Remove empty cgroups."""
    for path in set(paths.values()):
        remove(path)


def oom_kills(paths: Paths) -> int:
    """How many processes the kernel has killed because the memory limit was reached."""
    group = paths.get("memory")
    for file in ("memory.events", "memory.oom_control") if group is not None else ():
        try:
            words = kernel.read(f"{group}/{file}").split()
        except OSError:
            continue
        if b"oom_kill" in words:
            return int(words[words.index(b"oom_kill") + 1])
    return 0


def peak_bytes(paths: Paths) -> int | None:
    """The peak of the memory that was charged to the command."""
    group = paths.get("memory")
    for file in ("memory.peak", "memory.max_usage_in_bytes") if group is not None else ():
        try:
            return int(kernel.read(f"{group}/{file}"))
        except (OSError, ValueError):
            continue
    return None


def _set(group: str, version: int, limit: str, value: float) -> None:
    for setting in settings(version, limit, value):
        try:
            write(f"{group}/{setting.file}", setting.value)
        except OSError as failed:
            if setting.needed:
                raise OSError(failed.errno, f"cannot limit {limit} to {value:g}: {failed.strerror}") from failed


def _describe(root: ControllerRoot | None) -> dict[str, Any] | None:
    return None if root is None else {"version": root.version, "directory": root.groups.root}


class ControllerRoot(NamedTuple):
    """Where cgroups with one controller can be created."""

    version: int
    groups: Groups


def find(name: str) -> dict[str, ControllerRoot]:
    """The root of every controller that we may use; `name` is the name of our directory in each."""
    roots = {controller: found for controller in FILES if (found := _v1_root(controller, name)) is not None}
    missing = [controller for controller in FILES if controller not in roots]
    return {**roots, **_v2_roots(missing, f"{name}-limited")}


def bases() -> set[str]:
    """The cgroups in which instances have their directories."""
    own = [Groups.mount_and_own()[1], *(own for _, own in own_groups())]
    return {*(outside_command_groups(group) for group in own if group is not None), *_v2_bases()}


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
