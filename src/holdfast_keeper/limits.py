"""Limits on memory, processors and processes of a command's whole tree, by cgroup.

The cgroups exist and have their limits before the command runs. It joins them itself just before exec, so that the
limits hold from its first instruction. A limit that this machine does not support is refused, never ignored.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from holdfast_keeper import controllers, kernel
from holdfast_keeper.controllers import FILES, ControllerRoot, write
from holdfast_keeper.groups import Groups, remove

#: The cgroup controller of each limit.
CONTROLLER = {"memory": "memory", "cpus": "cpu", "pids": "pids"}
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
            self._found = controllers.find(name) if name is not None else {}
        return self._found

    def find_existing(self) -> bool:
        """Whether the last keeper has left cgroups. If so, they are swept from now on."""
        name = self._groups.name
        return name is not None and controllers.were_used(name) and bool(self._roots)

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


assert {*CONTROLLER.values()} == FILES.keys()
