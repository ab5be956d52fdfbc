"""Cgroups (v2) for held commands, where the machine lets us make some."""

from __future__ import annotations

import binascii
import os

_PREFIX = "holdfast-"


class Groups:
    """A directory of cgroups that belongs to one place. `root` is None where there can be none."""

    def __init__(self, root: str | None) -> None:
        self.root = root
        self._count = 0

    @classmethod
    def of_place(cls, place: str) -> Groups:
        if os.environ.get("HOLDFAST_NO_CGROUP"):
            return cls(None)
        outside = _outside_of_held()
        if outside is None:
            return cls(None)
        root = f"{outside}/{_PREFIX}{os.getuid()}-{binascii.crc32(os.fsencode(place)):08x}"
        return cls(root if _is_usable(root) else None)

    def make(self) -> str | None:
        """A new, empty group; None where there can be none."""
        if self.root is None:
            return None
        while True:
            self._count += 1
            group = f"{self.root}/{os.getpid()}-{self._count}-{os.urandom(4).hex()}"
            try:
                os.mkdir(group)
            except FileExistsError:
                continue
            except OSError:
                return None
            return group

    def sweep(self, kept: set[str]) -> bool:
        """Remove the groups that nobody is in and nobody needs; whether some are still in use by leftovers."""
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


def join(group: str) -> None:
    """Move the calling process into the group."""
    with open(f"{group}/cgroup.procs", "w") as file:
        file.write("0")


def leave_held() -> None:
    """Whoever started us may itself be held: get out of its group, or we would end with it."""
    own, outside = _own_group(), _outside_of_held()
    if own is not None and outside is not None and own != outside:
        try:
            join(outside)
        except OSError:
            return


def _own_group() -> str | None:
    mount = _mount_point()
    if mount is None:
        return None
    with open("/proc/self/cgroup") as file:
        for line in file:
            if line.startswith("0::"):
                return (mount + line.strip()[3:]).rstrip("/")
    return None


def _outside_of_held() -> str | None:
    own = _own_group()
    if own is None:
        return None
    at = own.find(f"/{_PREFIX}")
    return own if at < 0 else own[:at]


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
