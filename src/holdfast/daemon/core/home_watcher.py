"""Watches the home and the socket: clients would not find the daemon after one of them was deleted."""

from __future__ import annotations

import asyncio
import os

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.core.log import note
from holdfast.daemon.listener.server import Server
from holdfast.errors import HoldfastError

_PAUSE = 5.0


async def watch_home(context: DaemonContext, server: Server) -> None:
    """Listen again after the socket was deleted, for ever. Without a home, stop the daemon once no command runs."""
    home = os.open(context.paths.home, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    is_gone = False
    while not is_gone or _is_needed(context):
        if not is_gone and not os.path.lexists(context.paths.socket):
            await _mend(context, server)
        await asyncio.sleep(_PAUSE)
        if not is_gone and not _is_there(context.paths.home, home):
            is_gone = True
            note("home-gone", path=context.paths.home)
    context.stop_asked.set()


def _is_there(path: str, home: int) -> bool:
    """Not when another directory stands in its place, either."""
    try:
        return os.path.samestat(os.fstat(home), os.stat(path))
    except OSError:
        return False


async def _mend(context: DaemonContext, server: Server) -> None:
    note("socket-gone", path=context.paths.socket)
    try:
        await server.reopen()
    except (OSError, HoldfastError) as failed:  # its directory may come back, as that of a user who logs in again
        note("socket-not-mended", why=failed)


def _is_needed(context: DaemonContext) -> bool:
    """Without its files the keeper cannot report an end, so the processes themselves are checked."""
    return any(
        process.pid is None or context.place_of(process).is_alive(process.pid)
        for process in context.registry.living.values()
    )
