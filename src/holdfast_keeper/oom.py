"""A command that reaches its memory limit goes with all that it started.

In the v2 tree the kernel does that by itself. A v1 hierarchy ends one process and lets the others go on: there the
kernel tells us, and we end the rest. Its count of such kills is the record, so a successor goes on where we were.
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
#: Looks for a kill that was announced, and at a tree that should be gone.
_LOOKS = 400


class OomWatch:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._events: dict[str, int] = {}

    def begin(self, command: HeldCommand) -> None:
        """Be told of kills, and look for those that happened before."""
        group = command.born.get("limits", {}).get("memory")
        if group is None or command.id in self._events or not os.path.exists(f"{group}/cgroup.event_control"):
            return
        try:
            event = _announcer(group)
        except OSError:
            return  # the kernel lacks it, or the group is gone: then the end alone tells
        self._events[command.id] = event
        self._keeper.loop.watch(event, READ, self._keeper.guarded(command, lambda _: self._announced(command, event)))
        if limits.oom_kills(command.born["limits"]):
            self._look(command, _LOOKS)

    def end(self, command: HeldCommand) -> None:
        event = self._events.pop(command.id, None)
        if event is not None:
            self._keeper.loop.unwatch(event)
            os.close(event)

    def _announced(self, command: HeldCommand, event: int) -> None:
        os.eventfd_read(event)
        self._look(command, _LOOKS)

    def _look(self, command: HeldCommand, looks: int) -> None:
        """The announcement comes before the kill, and some of the tree may be just being born."""
        if looks == 0 or command.id not in self._events:
            return
        if limits.oom_kills(command.born["limits"]):
            if command.exit is not None and not command.tree.members():
                return
            command.tree.force()
        self._keeper.loop.after(_LOOK_PAUSE, self._keeper.guarded(command, lambda: self._look(command, looks - 1)))


def _announcer(group: str) -> int:
    """A descriptor that becomes readable when the group runs out of memory."""
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
