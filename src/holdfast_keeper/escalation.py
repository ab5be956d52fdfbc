"""From asking to forcing: how a command's tree is brought to an end, step by step, without waiting in between."""

from __future__ import annotations

import signal

from holdfast_keeper import tree
from holdfast_keeper.tree import Tree, TreeMember

#: After the forced kill, how long a process stuck in the kernel is waited for before it is named a survivor.
FORCE_TIMEOUT = 5.0

_FIRST_LOOK = 0.001
_SLOWEST_LOOK = 0.05


class Escalation:
    """One end in progress. `step` is called until it returns None; times are wall-clock, to outlive a restart."""

    def __init__(
        self, held: Tree, polite: int, grace: float, asked_at: float, forced: bool = False, quiet: float = 0.0
    ) -> None:
        self._tree = held
        self._polite = polite
        #: Before this it may go by itself, or because somebody talks to it in its own way.
        self.ask_at = asked_at + quiet
        self.force_at = self.ask_at + grace
        self.forced = forced
        self._forced_at: float | None = None
        self._asked: set[TreeMember] = set()
        self._pause = _FIRST_LOOK
        self.survivors: list[int] = []

    def hurry(self, grace: float, now: float, quiet: float = 0.0) -> None:
        """Somebody else asked as well, and has less patience."""
        self.ask_at = min(self.ask_at, now + quiet)
        self.force_at = min(self.force_at, now + quiet + grace)

    def step(self, now: float) -> float | None:
        """Do what is due; when to look again, or None when the tree is gone or what is left will not die."""
        members = self._members()
        self.survivors = [member.pid for member in members]
        if not members:
            return None
        if now < min(self.ask_at, self.force_at):
            return min(self._next_pause(), self.ask_at - now)
        if now < self.force_at:
            self._ask(members)
            return min(self._next_pause(), self.force_at - now)
        if self._forced_at is None:
            self._forced_at = now
            self._pause = _FIRST_LOOK
            self.forced = True
        if now > self._forced_at + FORCE_TIMEOUT:
            return None
        self._tree.force()
        for member in members:
            tree.send(member, signal.SIGKILL)
        return self._next_pause()

    def _members(self) -> list[TreeMember]:
        """Also those who were members when they were asked, and can no longer be told from others by where they are."""
        found = self._tree.members()
        return [*found, *(member for member in self._asked - set(found) if tree.is_alive(member))]

    def _ask(self, members: list[TreeMember]) -> None:
        for member in members:
            if member not in self._asked:
                self._asked.add(member)
                tree.send(member, self._polite)
                tree.send(member, signal.SIGCONT)  # a stopped process would not hear it

    def _next_pause(self) -> float:
        pause, self._pause = self._pause, min(self._pause * 2, _SLOWEST_LOOK)
        return pause
