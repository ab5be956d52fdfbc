"""Whether a caller runs within a command that was judged. Such a caller is bound to its session and judged itself.

Without this, a command that may run could have everything else run, or approved, by calling holdfast itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from holdfast.daemon.core.registry import Registry
from holdfast.model.ids import ProcessId
from holdfast.model.process import HeldProcess
from holdfast.places.base import ExecutionPlace, ProcessInfo

_MOST_PAST_HELPERS = 1000
_ATTEMPTS = 3


class JudgedOrigin(NamedTuple):
    """A caller that descends from a command that was judged."""

    session: str | None
    """The session of that command; None where it is not known which one it was."""


class CallerAncestry:
    """Finds the judged command that a caller descends from."""

    def __init__(self, registry: Registry, place: ExecutionPlace) -> None:
        self._registry = registry
        self._place = place
        self._pids: dict[int, HeldProcess] = {}
        self._of: dict[ProcessId, int] = {}
        #: Commands that the daemon itself runs for such a process; and those that ended, for what they left behind.
        self._helpers: dict[int, ProcessId] = {}
        self._past_helpers: dict[int, ProcessId] = {}
        #: Whether any command was ever judged: what it left behind may still be there.
        self._were_any = False
        for process in registry.all.values():
            self._note(process)
        registry.listen(self._note)

    def of(self, pid: int | None) -> JudgedOrigin | None:
        """None for callers from elsewhere. Costs nothing where no command was ever judged.

        A caller that has died may have passed its connection to a child: it counts as judged.
        """
        if not self._were_any or pid is None or pid <= 1:
            return None
        for _ in range(_ATTEMPTS):  # the line is broken where an ancestor dies meanwhile: its children move
            is_complete, origin = self._walk(pid)
            if is_complete:
                return origin
        return JudgedOrigin(None)

    def _walk(self, pid: int) -> tuple[bool, JudgedOrigin | None]:
        """Whether the line of ancestors was followed to where the origin is certain, and the origin."""
        keepers = self._place.keeper_pids
        ancestors = self._place.ancestors(pid)
        while True:
            if (process := self._pids.get(pid)) is not None:
                return True, JudgedOrigin(process.meta.session)
            if pid in keepers:
                return True, JudgedOrigin(None)
            if (info := next(ancestors, None)) is None:
                return False, None
            if (helped := self._helped(info)) is not None:
                return True, JudgedOrigin(self._registry.owner(helped))
            if info.ppid <= 1 or pid == os.getpid():
                return True, None
            pid = info.ppid

    @contextmanager
    def helping(self, pid: int, process: HeldProcess) -> Iterator[None]:
        """While a command that leads a session of its own runs for a process, started by the daemon."""
        if process.meta.gated:
            self._helpers[pid] = process.id
        try:
            yield
        finally:
            if (helped := self._helpers.pop(pid, None)) is not None:
                self._past_helpers[pid] = helped
            if len(self._past_helpers) > _MOST_PAST_HELPERS:
                self._past_helpers.pop(next(iter(self._past_helpers)))

    def _helped(self, info: ProcessInfo) -> ProcessId | None:
        """The process that it was started for, by the daemon or by the leader of its session."""
        helped = self._helpers.get(info.pid) or self._helpers.get(info.session)
        if helped is None and info.session in self._past_helpers and not self._place.is_alive(info.session):
            helped = self._past_helpers[info.session]  # a leader that lives would be another one with the same pid
        return helped

    def _note(self, process: HeldProcess) -> None:
        if not process.meta.gated:
            return
        self._were_any = True
        if (before := self._of.pop(process.id, None)) is not None and self._pids.get(before) is not None:
            del self._pids[before]
        if process.pid is not None and process.is_running:
            self._of[process.id] = process.pid
            self._pids[process.pid] = process
