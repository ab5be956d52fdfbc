"""The home and the socket, looked after: one that was deleted is noticed, for nobody would find us there any more."""

from __future__ import annotations

import asyncio
import os

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.core.log import note
from holdfast.daemon.listener.server import Server
from holdfast.errors import HoldfastError

_PAUSE = 5.0


class Home:
    """The directory as it was when the daemon started. It is gone when another one stands in its place, too."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def is_there(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self._path))
        except OSError:
            return False


async def watch_home(context: DaemonContext, server: Server) -> None:
    """Mend a deleted socket, for ever; without a home, ask the daemon to stop as soon as no command runs."""
    home = Home(context.paths.home)
    is_gone = False
    while not is_gone or _is_needed(context):
        if not is_gone and not os.path.lexists(context.paths.socket):
            await _mend(context, server)
        await asyncio.sleep(_PAUSE)
        if not is_gone and not home.is_there():
            is_gone = True
            note("home-gone", path=context.paths.home)
    context.stop_asked.set()


async def _mend(context: DaemonContext, server: Server) -> None:
    note("socket-gone", path=context.paths.socket)
    try:
        await server.reopen()
    except (OSError, HoldfastError) as failed:  # its directory may come back, as that of a user who logs in again
        note("socket-not-mended", why=failed)


def _is_needed(context: DaemonContext) -> bool:
    """Without its files the keeper cannot tell us of an end, so we look for ourselves."""
    return any(
        process.pid is None or context.place.is_alive(process.pid) for process in context.registry.living.values()
    )
