"""The stop steps of a command's tree: a quiet time, the stop signal, the grace period, SIGKILL. No step waits."""

from __future__ import annotations

import signal

from holdfast_keeper import tree
from holdfast_keeper.tree import Tree, TreeMember

#: After SIGKILL: how long a process stuck in the kernel is waited for before it is reported as a survivor.
FORCE_TIMEOUT = 5.0

_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.05


class Escalation:
    """One stop in progress. `step` is called until it returns None. Times are wall-clock: they outlive a keeper."""

    def __init__(
        self, held: Tree, stop_signal: int, grace: float, requested_at: float, forced: bool = False, quiet: float = 0.0
    ) -> None:
        self._tree = held
        self._stop_signal = stop_signal
        #: No signal is sent before this: a stop command may end it meanwhile.
        self.signal_at = requested_at + quiet
        self.force_at = self.signal_at + grace
        self.forced = forced
        self._forced_at: float | None = None
        self._signalled: set[TreeMember] = set()
        self._pause = _FIRST_PAUSE
        self.survivors: list[int] = []

    def hurry(self, grace: float, now: float, quiet: float = 0.0) -> None:
        """Another request to stop it: the shorter times apply."""
        self.signal_at = min(self.signal_at, now + quiet)
        self.force_at = min(self.force_at, now + quiet + grace)

    def step(self, now: float) -> float | None:
        """Do what is due. Returns the pause before the next step; None when the tree is gone or cannot be killed."""
        members = self._members()
        self.survivors = [member.pid for member in members]
        if not members:
            return None
        if now < min(self.signal_at, self.force_at):
            return min(self._next_pause(), self.signal_at - now)
        if now < self.force_at:
            self._signal(members)
            return min(self._next_pause(), self.force_at - now)
        if self._forced_at is None:
            self._forced_at = now
            self._pause = _FIRST_PAUSE
            self.forced = True
        if now > self._forced_at + FORCE_TIMEOUT:
            return None
        self._tree.force()
        for member in members:
            tree.send(member, signal.SIGKILL)
        return self._next_pause()

    def _members(self) -> list[TreeMember]:
        """Includes processes that got the stop signal as members and have left the tree since."""
        found = self._tree.members()
        return [*found, *(member for member in self._signalled - set(found) if tree.is_alive(member))]

    def _signal(self, members: list[TreeMember]) -> None:
        for member in members:
            if member not in self._signalled:
                self._signalled.add(member)
                tree.send(member, self._stop_signal)
                tree.send(member, signal.SIGCONT)  # a stopped process would not handle it

    def _next_pause(self) -> float:
        pause, self._pause = self._pause, min(self._pause * 2, _LONGEST_PAUSE)
        return pause
