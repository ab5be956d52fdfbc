"""Starts the daemon again when it dies without having sent `leave`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast_keeper import log
from holdfast_keeper.connections import Connection

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 60.0
#: A daemon that lived for this long is healthy: the pause before its next restart is short again.
_HEALTHY_AFTER = 30.0


class DaemonRestart:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._pause = _FIRST_PAUSE
        #: Whether the daemon has stopped on purpose. Also true where none has ever connected.
        self.was_left = bool(keeper.settings.get("left")) or not keeper.settings
        if not self.was_left and keeper.settings.get("revive"):
            keeper.loop.after(1.0, self._look)  # it may have died together with the last keeper

    def arrived(self) -> None:
        self.was_left = False
        self._keeper.loop.after(_HEALTHY_AFTER, self._reset_pause)

    def lost(self, connection: Connection) -> None:
        if connection.has_left:
            self.was_left = True
            self._keeper.exit_if_done()
        elif connection.is_daemon:
            self._keeper.loop.after(self._pause, self._look)

    def _look(self) -> None:
        argv = self._keeper.settings.get("revive")
        if self.was_left or not argv or any(connection.is_daemon for connection in self._keeper.connections):
            return
        if not self._keeper.dir.exists():  # deleted: the daemon would create it again
            return
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        self._keeper.loop.after(self._pause, self._look)
        try:
            os.posix_spawn(argv[0], argv, os.environ, setsid=True, setsigdef=_IGNORED)
        except OSError as failed:
            log.write(f"keeper: cannot start the daemon: {failed}")

    def _reset_pause(self) -> None:
        if any(connection.is_daemon for connection in self._keeper.connections):
            self._pause = _FIRST_PAUSE


_IGNORED = (1, 2, 3, 13, 15, 20)
