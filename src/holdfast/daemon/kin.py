"""Who asks from within a command that was judged: such a command is bound to its session, and what it starts is judged.

Without this, a command that may run could have everything else run, or approved, by calling holdfast itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from holdfast.daemon.registry import Registry
from holdfast.machine.processes import Seen, look
from holdfast.model.ids import ProcessId
from holdfast.model.process import Process

#: More generations than anybody has.
_MOST = 256
_MOST_PAST = 1000


class Kinship(NamedTuple):
    """How a caller is related to commands that were judged."""

    session: str | None
    """The session of that command; None where it is not known which of them it was."""


class Kin:
    """`family` gives the pids of those who adopt what a command leaves behind: the keeper and the anchor."""

    def __init__(self, registry: Registry, family: Callable[[], set[int]]) -> None:
        self._registry = registry
        self._family = family
        self._pids: dict[int, Process] = {}
        self._of: dict[ProcessId, int] = {}
        #: Commands that run for one of them as our own children; and those that are over, for what they left behind.
        self._helpers: dict[int, ProcessId] = {}
        self._past_helpers: dict[int, ProcessId] = {}
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
            if seen is not None and (helped := self._helped(seen)) is not None:
                return Kinship(self._registry.owner(helped))
            if seen is None or seen.ppid <= 1 or pid == os.getpid():
                return None
            pid = seen.ppid
        return Kinship(None)

    @contextmanager
    def helping(self, pid: int, process: Process) -> Iterator[None]:
        """While a command that leads a session of its own runs for a process, started by us."""
        if process.meta.gated:
            self._helpers[pid] = process.id
        try:
            yield
        finally:
            if (helped := self._helpers.pop(pid, None)) is not None:
                self._past_helpers[pid] = helped
            if len(self._past_helpers) > _MOST_PAST:
                self._past_helpers.pop(next(iter(self._past_helpers)))

    def _helped(self, seen: Seen) -> ProcessId | None:
        """For which process it was started by us, or by who led its session."""
        helped = self._helpers.get(seen.pid) or self._helpers.get(seen.session)
        if helped is None and seen.session in self._past_helpers and look(seen.session) is None:
            helped = self._past_helpers[seen.session]  # a leader that is there would be another with the same number
        return helped

    def _note(self, process: Process) -> None:
        if not process.meta.gated:
            return
        self._were_any = True
        if (before := self._of.pop(process.id, None)) is not None and self._pids.get(before) is not None:
            del self._pids[before]
        if process.pid is not None and process.is_running:
            self._of[process.id] = process.pid
            self._pids[process.pid] = process
