"""Who asks from within a command that was judged: such a command is bound to its session, and what it starts is judged.

Without this, a command that may run could have everything else run, or approved, by calling holdfast itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from holdfast.daemon.registry import Registry
from holdfast.machine.processes import look
from holdfast.model.ids import ProcessId
from holdfast.model.process import Process

#: More generations than anybody has.
_MOST = 256


class Kinship(NamedTuple):
    """How a caller is related to commands that were judged."""

    session: str | None
    """The session of that command; None where it is not known which of them it was."""


class Kin:
    """`family` gives the pids of those who adopt what a command leaves behind: the keeper and the anchor."""

    def __init__(self, registry: Registry, family: Callable[[], set[int]]) -> None:
        self._family = family
        self._pids: dict[int, Process] = {}
        self._of: dict[ProcessId, int] = {}
        #: Whether there ever was one: what it left behind may still be there.
        self._were_any = False
        for process in registry.all.values():
            self._note(process)
        registry.listen(self._note)

    def of(self, pid: int | None) -> Kinship | None:
        """None for callers from elsewhere; costs nothing where no command was ever judged."""
        if not self._were_any or pid is None:
            return None
        family = self._family()
        for _ in range(_MOST):
            if (process := self._pids.get(pid)) is not None:
                return Kinship(process.meta.session)
            if pid in family:
                return Kinship(None)
            seen = look(pid)
            if seen is None or seen.ppid <= 1 or pid == os.getpid():
                return None
            pid = seen.ppid
        return Kinship(None)

    def _note(self, process: Process) -> None:
        if not process.meta.gated:
            return
        self._were_any = True
        if (before := self._of.pop(process.id, None)) is not None and self._pids.get(before) is not None:
            del self._pids[before]
        if process.pid is not None and process.is_running:
            self._of[process.id] = process.pid
            self._pids[process.pid] = process
