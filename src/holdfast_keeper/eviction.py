"""When somebody deletes the place under our feet: hold on while a command runs, then end and leave nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast_keeper import log

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper

_PAUSE = 5.0


class Eviction:
    """Looks now and then whether the place is still there."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._is_told = False
        keeper.loop.after(_PAUSE, self._look)

    def _look(self) -> None:
        self._keeper.loop.after(_PAUSE, self._look)
        if self._keeper.dir.exists():
            return
        if not self._is_told:
            log.write(f"keeper: {self._keeper.dir.path} is gone")
            self._is_told = True
        if not self._is_needed():
            self._keeper.loop.stop()

    def _is_needed(self) -> bool:
        """A daemon that is with us ends first; it would bring up another keeper."""
        keeper = self._keeper
        if keeper.starter.is_busy or keeper.stopper.is_busy:
            return True
        if any(connection.is_daemon for connection in keeper.connections):
            return True
        return any(command.tree.members() for command in keeper.commands.values())
