"""Limits on memory, processors and processes of a held command with everything it spawned, by cgroup.

The groups are made and filled with limits before the command is let go; it joins them itself, just before exec, so
that its first instruction is already counted. What cannot be limited here is refused, never left out.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from holdfast_keeper import controllers, kernel
from holdfast_keeper.controllers import FILES, ControllerRoot, write
from holdfast_keeper.groups import Groups, remove

#: The controller behind each limit that can be asked for.
CONTROLLER = {"memory": "memory", "cpus": "cpu", "pids": "pids"}
_PERIOD = 100_000

LimitValues = dict[str, Any]
#: The group of each controller that limits a command, as recorded in `born`.
Paths = dict[str, str]


class UnsupportedLimit(Exception):
    """A limit that this machine does not offer."""


class ProcessLimits:
    """The limits that commands of one place can have. Looked up when first needed: most commands have none."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._found: dict[str, ControllerRoot] | None = None

    @property
    def _roots(self) -> dict[str, ControllerRoot]:
        if self._found is None:
            name = self._groups.name
            self._found = controllers.find(name) if name is not None else {}
        return self._found

    def recall(self) -> bool:
        """Whether there are groups that a predecessor made; from then on they are swept, too."""
        name = self._groups.name
        return name is not None and controllers.were_used(name) and bool(self._roots)

    def describe(self) -> dict[str, Any]:
        """For each limit where it is set: version and directory; None where it cannot be."""
        return {limit: _describe(self._roots.get(controller)) for limit, controller in CONTROLLER.items()}

    def check(self, wanted: LimitValues) -> None:
        """Raises Cannot for what this machine does not offer."""
        missing = [limit for limit in wanted if CONTROLLER[limit] not in self._roots]
        if missing:
            raise UnsupportedLimit(f"this machine offers no way to limit {' and '.join(missing)}")

    def make(self, wanted: LimitValues) -> Paths:
        """Groups with these limits, and nobody in them. Raises OSError, and then nothing is left of them."""
        made: dict[Groups, str] = {}
        paths: Paths = {}
        try:
            for limit, value in wanted.items():
                root_of = self._roots[CONTROLLER[limit]]
                if root_of.groups not in made:
                    made[root_of.groups] = root_of.groups.make_or_raise()
                paths[CONTROLLER[limit]] = made[root_of.groups]
                _set(made[root_of.groups], root_of.version, limit, value)
        except OSError:
            give_up(paths)
            raise
        return paths

    def sweep(self, kept: set[str]) -> bool:
        """As Groups.sweep."""
        busy = [groups for groups in self._places() if groups.sweep(kept)]
        return bool(busy)

    def close(self) -> None:
        for groups in self._places():
            groups.close()

    def _places(self) -> set[Groups]:
        return {root_of.groups for root_of in (self._found or {}).values()}


class Setting(NamedTuple):
    file: str
    value: str
    needed: bool = True
    """Otherwise it is set where the kernel has it."""


def settings(version: int, limit: str, value: float) -> list[Setting]:
    """What is written for a limit, in order."""
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
    """The group that tells who belongs to the command: one of the v2 tree, where a limit is set there."""
    for path in paths.values():
        if os.path.exists(f"{path}/cgroup.events"):
            return path
    return otherwise


def give_up(paths: Paths) -> None:
    """Remove groups that nobody is in."""
    for path in set(paths.values()):
        remove(path)


def oom_kills(paths: Paths) -> int:
    """How many processes the kernel ended because the memory limit was reached."""
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
    """The most memory that was ever charged to the command."""
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


def _describe(root_of: ControllerRoot | None) -> dict[str, Any] | None:
    return None if root_of is None else {"version": root_of.version, "directory": root_of.groups.root}


assert {*CONTROLLER.values()} == FILES.keys()
