"""What a cgroup has used, and which processes are in it. Reads files and is meant for a thread."""

from __future__ import annotations

import os
import resource
from collections.abc import Collection

from holdfast.machine.proc import MemoryUse

_CPU_SIZE = 128


class CpuGauges:
    """Processor time of many groups, for one thread. With the files kept open, a reading costs a tenth."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        #: Descriptors are needed for other things, too.
        self._most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4

    @property
    def are_open(self) -> bool:
        return bool(self._files)

    def cpu_seconds(self, group: str) -> float | None:
        """All that was ever used in the group, to the microsecond; None when unknown, as of a group that is gone."""
        try:
            file = self._files.get(group)
            if file is None:
                file = self._open(group)
            words = os.pread(file, _CPU_SIZE, 0).split(None, 2)
            return int(words[1]) / 1e6 if words[0] == b"usage_usec" else None
        except (OSError, ValueError, IndexError):
            return None

    def keep(self, groups: Collection[str | None]) -> None:
        """Close the files of all other groups."""
        for group in self._files.keys() - set(groups):
            os.close(self._files.pop(group))

    def _open(self, group: str) -> int:
        if len(self._files) >= self._most:
            self.keep(())
        file = self._files[group] = os.open(f"{group}/cpu.stat", os.O_RDONLY | os.O_CLOEXEC)
        return file


def cpu_seconds(group: str) -> float | None:
    """As CpuGauges.cpu_seconds, for a group that is read seldom."""
    gauges = CpuGauges()
    try:
        return gauges.cpu_seconds(group)
    finally:
        gauges.keep(())


def pids_in(group: str) -> list[int]:
    """The members of a group of the v2 tree and of those below it."""
    found: list[int] = []
    for directory, _, _ in os.walk(group):
        try:
            found += map(int, _read(f"{directory}/cgroup.procs").split())
        except OSError:  # it was removed, or takes no processes
            continue
    return found


def memory_of(group: str) -> MemoryUse | None:
    """What counts against a memory limit, without files that could be dropped at once; None when unknown."""
    for now, peak, droppable in (
        ("memory.current", "memory.peak", b"inactive_file"),
        ("memory.usage_in_bytes", "memory.max_usage_in_bytes", b"total_inactive_file"),
    ):
        try:
            used = int(_read(f"{group}/{now}"))
            words = _read(f"{group}/memory.stat").split()
        except (OSError, ValueError):
            continue
        used -= int(words[words.index(droppable) + 1]) if droppable in words else 0
        return MemoryUse(max(0, used), _peak(f"{group}/{peak}", used))
    return None


def _peak(path: str, at_least: int) -> int:
    try:
        return max(at_least, int(_read(path)))
    except (OSError, ValueError):  # an older kernel records none
        return at_least


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 1 << 18)
    finally:
        os.close(fd)
