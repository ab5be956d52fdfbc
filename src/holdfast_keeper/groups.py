"""Cgroups (v2) for held commands, where the machine lets us create them."""

from __future__ import annotations

import binascii
import os
import time

from holdfast_keeper import kernel

_PREFIX = "holdfast-"
#: Cgroups of other instances that are younger than this are not touched.
_LEAST_AGE = 60.0


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
        root = f"{outside_command_groups(own)}/{name}" if own is not None else None
        groups = cls(root if root is not None and _is_usable(root) else None)
        groups.name = name
        return groups

    @staticmethod
    def mount_and_own() -> tuple[str | None, str | None]:
        """Where the v2 tree is mounted, and our own group in it."""
        return _mount_point(), _own_group()

    def make(self) -> str | None:
        """A new, empty cgroup; None where none can be created."""
        if self.root is None:
            return None
        try:
            return self.make_or_raise()
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


def remove(group: str) -> bool:
    try:
        os.rmdir(group)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def of_other_instances(base: str, own_name: str) -> list[str]:
    """The directories of other instances of this user in a cgroup."""
    prefix = f"{_PREFIX}{os.getuid()}-"
    return [f"{base}/{name}" for name in _listdir(base) if name.startswith(prefix) and not name.startswith(own_name)]


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


def join(group: str) -> None:
    """Move the calling process into the group."""
    with open(f"{group}/cgroup.procs", "w") as file:
        file.write("0")


def outside_command_groups(group: str) -> str:
    """The cgroup itself; if it is one of ours, the one that our directory is in."""
    at = group.find(f"/{_PREFIX}")
    return group if at < 0 else group[:at]


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


def _is_usable(root: str) -> bool:
    probe = f"{root}/probe-{os.getpid()}"
    try:
        os.makedirs(probe, exist_ok=True)
        usable = os.access(f"{probe}/cgroup.procs", os.W_OK) and os.path.exists(f"{probe}/cgroup.events")
        os.rmdir(probe)
    except OSError:
        return False
    return usable


def _listdir(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []
