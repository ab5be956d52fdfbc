"""When a command reaches its memory limit, its whole tree is killed.

In the v2 tree the kernel does that itself. In a v1 hierarchy it kills one process and lets the others run: there it
notifies us, and we kill the rest. Its counter of such kills is the record that a new keeper resumes from.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast_keeper import limits
from holdfast_keeper.controllers import write
from holdfast_keeper.held_command import HeldCommand
from holdfast_keeper.loop import READ

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper

_LOOK_PAUSE = 0.005
#: How often to look, after a notification, until the kill is counted and the tree is gone.
_LOOKS = 400


class OomWatch:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._events: dict[str, int] = {}

    def begin(self, command: HeldCommand) -> None:
        """Subscribe to kills, and look for those that happened before."""
        group = command.born.get("limits", {}).get("memory")
        if group is None or command.id in self._events or not os.path.exists(f"{group}/cgroup.event_control"):
            return
        try:
            event = _oom_event(group)
        except OSError:
            return  # the kernel lacks it, or the cgroup is gone: the exit record still says `oom`
        self._events[command.id] = event
        self._keeper.loop.watch(event, READ, self._keeper.guarded(command, lambda _: self._notified(command, event)))
        if limits.oom_kills(command.born["limits"]):
            self._look(command, _LOOKS)

    def end(self, command: HeldCommand) -> None:
        event = self._events.pop(command.id, None)
        if event is not None:
            self._keeper.loop.unwatch(event)
            os.close(event)

    def _notified(self, command: HeldCommand, event: int) -> None:
        os.eventfd_read(event)
        self._look(command, _LOOKS)

    def _look(self, command: HeldCommand, looks: int) -> None:
        """Repeated, because the notification comes before the kill, and the tree may still be forking."""
        if looks == 0 or command.id not in self._events:
            return
        if limits.oom_kills(command.born["limits"]):
            if command.exit is not None and not command.tree.members():
                return
            command.tree.force()
        self._keeper.loop.after(_LOOK_PAUSE, self._keeper.guarded(command, lambda: self._look(command, looks - 1)))


def _oom_event(group: str) -> int:
    """An eventfd that becomes readable when the cgroup runs out of memory."""
    event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
    control = os.open(f"{group}/memory.oom_control", os.O_RDONLY | os.O_CLOEXEC)
    try:
        write(f"{group}/cgroup.event_control", f"{event} {control}")
    except OSError:
        os.close(event)
        raise
    finally:
        os.close(control)
    return event
