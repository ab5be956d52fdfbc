"""Cgroups of held commands: one for the tree of each, and further ones for its limits.

`Groups` has the cgroups of one place (v2), where the machine lets us create them: the kernel knows the members of a
tree then. `ProcessLimits` limits memory, processors and processes of a whole tree, with v1 or v2. The cgroups of a
command exist and have their limits before it runs. It joins them itself just before exec, so that the limits hold from
its first instruction. A limit that this machine does not support is refused, never ignored.
"""

from __future__ import annotations

import binascii
import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from holdfast_keeper import kernel

_PREFIX = "holdfast-"
#: Cgroups of other instances that are younger than this are not touched.
_LEAST_AGE = 60.0
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


class Groups:
    """The cgroups of one place, in the directory `root`. It is None where cgroups cannot be created."""

    def __init__(self, root: str | None) -> None:
        self.root = root
        self._count = 0
        #: The name of our directory in every hierarchy; None when cgroups are switched off.
        self.name = None if root is None else os.path.basename(root)

    @classmethod
    def of_place(cls, place: str) -> Groups:
        if os.environ.get("HOLDFAST_NO_CGROUP"):
            return cls(None)
        name = f"{_PREFIX}{os.getuid()}-{binascii.crc32(os.fsencode(place)):08x}"
        own = _own_group()
        root = f"{_outside_command_groups(own)}/{name}" if own is not None else None
        groups = cls(root if root is not None and _can_create(root, "cgroup.events", os.F_OK) else None)
        groups.name = name
        return groups

    def make(self) -> str | None:
        """A new, empty cgroup; None where none can be created."""
        if self.root is None:
            return None
        try:
            return self.make_or_raise()
        except FileNotFoundError:  # another program removed the directory while it was empty
            return self.make_or_raise() if _made(self.root) else None
        except OSError:
            return None

    def make_or_raise(self) -> str:
        """As `make`. Raises OSError."""
        while True:
            self._count += 1
            group = f"{self.root}/{os.getpid()}-{self._count}-{os.urandom(4).hex()}"
            try:
                os.mkdir(group)
            except FileExistsError:
                continue
            return group

    def sweep(self, kept: set[str]) -> bool:
        """Remove the empty cgroups that are not in `kept`. Returns whether leftovers are still in some."""
        if self.root is None:
            return False
        busy = False
        for name in _listdir(self.root):
            group = f"{self.root}/{name}"
            if group not in kept and os.path.isdir(group):
                busy |= not remove(group)
        return busy

    def close(self) -> None:
        """Remove the directory itself, once it is empty."""
        if self.root is not None:
            self.sweep(set())
            remove(self.root)


def _made(directory: str) -> bool:
    try:
        os.mkdir(directory)
    except OSError:
        return False
    return True


def remove(group: str) -> bool:
    try:
        os.rmdir(group)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def join(group: str) -> None:
    """Move the calling process into the group."""
    with open(f"{group}/cgroup.procs", "w") as file:
        file.write("0")


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
            self._found = _find_roots(name) if name is not None else {}
        return self._found

    def find_existing(self) -> bool:
        """Whether the last keeper has left cgroups. If so, they are swept from now on."""
        name = self._groups.name
        return name is not None and _were_used(name) and bool(self._roots)

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
        try:
            return self._make(values)
        except FileNotFoundError:  # another program removed a directory while it was empty: they are set up again
            self._found = None
            self.check(values)
            return self._make(values)

    def _make(self, values: LimitValues) -> Paths:
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


def _set(group: str, version: int, limit: str, value: float) -> None:
    for setting in settings(version, limit, value):
        try:
            write(f"{group}/{setting.file}", setting.value)
        except OSError as failed:
            if setting.needed:
                raise OSError(failed.errno, f"cannot limit {limit} to {value:g}: {failed.strerror}") from failed


def _describe(root: ControllerRoot | None) -> dict[str, Any] | None:
    return None if root is None else {"version": root.version, "directory": root.groups.root}


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


class ControllerRoot(NamedTuple):
    """Where cgroups with one controller can be created."""

    version: int
    groups: Groups


def _find_roots(name: str) -> dict[str, ControllerRoot]:
    """The root of every controller that we may use; `name` is the name of our directory in each."""
    roots = {controller: found for controller in FILES if (found := _v1_root(controller, name)) is not None}
    missing = [controller for controller in FILES if controller not in roots]
    return {**roots, **_v2_roots(missing, f"{name}-limited")}


def _v1_root(controller: str, name: str) -> ControllerRoot | None:
    for controllers, own in _own_v1_groups():
        if controller in controllers.split(","):
            root = f"{_outside_command_groups(own)}/{name}"
            return ControllerRoot(1, Groups(root)) if _can_create(root, FILES[controller][1]) else None
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
    return _can_create(root, FILES[controller][2])


def _were_used(name: str) -> bool:
    """Whether there are directories of that name."""
    bases = [_outside_command_groups(own) for _, own in _own_v1_groups()]
    names = [f"{base}/{name}" for base in bases] + [f"{base}/{name}-limited" for base in _v2_bases()]
    return any(map(os.path.isdir, names))


def group_cpu(group: str | None) -> float | None:
    """Seconds of processor time that were ever used in a cgroup (v2); None when unknown."""
    try:
        words = kernel.read(f"{group}/cpu.stat").split()
    except OSError:
        return None
    return int(words[words.index(b"usage_usec") + 1]) / 1e6 if b"usage_usec" in words else None


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


def leave_command_groups() -> None:
    """Leave the cgroups of a held command that started us: we would be killed with it, and share its limits."""
    for own in _own_groups():
        if own != _outside_command_groups(own):
            with contextlib.suppress(OSError):
                join(_outside_command_groups(own))


def of_other_instances(own_name: str) -> list[str]:
    """The directories of other instances of this user."""
    prefix = f"{_PREFIX}{os.getuid()}-"
    found = [(base, name) for base in _bases() for name in _listdir(base)]
    return [f"{base}/{name}" for base, name in found if name.startswith(prefix) and not name.startswith(own_name)]


def _bases() -> set[str]:
    """The cgroups in which instances have their directories."""
    return {*map(_outside_command_groups, _own_groups()), *_v2_bases()}


def remove_if_dead(root: str) -> None:
    """Remove the empty cgroups of an instance whose keeper is dead. The kernel keeps those with a living process."""
    groups = [f"{root}/{name}" for name in _listdir(root) if os.path.isdir(f"{root}/{name}")]
    if any(map(_keeper_lives, groups)) or any(map(_is_young, [root, *groups])):
        return
    for group in groups:
        remove(group)
    remove(root)


def _keeper_lives(group: str) -> bool:
    """Whether the keeper that created a cgroup lives: its pid is in the name."""
    pid = next((word for word in os.path.basename(group).split("-") if word.isdigit()), "0")
    found = kernel.stat(int(pid))
    if found is None or found.is_dead:
        return False
    try:
        return kernel.read(f"/proc/{pid}/comm").startswith(_PREFIX.encode())
    except OSError:
        return False


def _is_young(group: str) -> bool:
    """An instance may be starting, or be in a container where its pids are others: empty cgroups are used at once."""
    try:
        return time.time() - os.stat(group).st_mtime < _LEAST_AGE
    except OSError:
        return True


def _outside_command_groups(group: str) -> str:
    """The cgroup itself; if it is one of ours, the one that our directory is in."""
    at = group.find(f"/{_PREFIX}")
    return group if at < 0 else group[:at]


def _own_groups() -> list[str]:
    """The cgroups that we are in, one for each hierarchy."""
    own = _own_group()
    return [*([] if own is None else [own]), *(group for _, group in _own_v1_groups())]


def _own_group() -> str | None:
    mount = _mount_point()
    if mount is None:
        return None
    with open("/proc/self/cgroup") as file:
        for line in file:
            if line.startswith("0::"):
                return (mount + line.strip()[3:]).rstrip("/")
    return None


def _mount_point() -> str | None:
    with open("/proc/self/mountinfo") as file:
        for line in file:
            fields, _, kind = line.partition(" - ")
            if kind.startswith("cgroup2 "):
                return fields.split()[4].rstrip("/")
    return None


def _own_v1_groups() -> Iterator[tuple[str, str]]:
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


def _v2_bases() -> Iterator[str]:
    """Our own cgroup, and those above it as far as we may create cgroups there."""
    mount, own = _mount_point(), _own_group()
    if mount is None or own is None:
        return
    base = _outside_command_groups(own)
    while base.startswith(mount) and os.access(base, os.W_OK):
        yield base
        if base == mount:
            return
        base = os.path.dirname(base)


def _can_create(root: str, file: str, access: int = os.W_OK) -> bool:
    """Whether we can create cgroups in this directory that have this file, with this access to it."""
    probe = f"{root}/probe-{os.getpid()}"
    try:
        os.makedirs(probe, exist_ok=True)
        usable = os.access(f"{probe}/{file}", access) and os.access(f"{probe}/cgroup.procs", os.W_OK)
        os.rmdir(probe)
    except OSError:
        return False
    return usable


def _listdir(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def _words(path: str) -> list[str]:
    return kernel.read(path).decode().split()


def write(path: str, text: str) -> None:
    """One write to a file of the kernel. Raises OSError when it refuses the value."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
