"""Ready when a process of the tree listens on a port. Somebody else who does is named."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple

from holdfast.daemon.keeper_link import Refused
from holdfast.daemon.logbook import note
from holdfast.daemon.room import Room
from holdfast.machine import listeners, sock_diag
from holdfast.model import readiness
from holdfast.model.process import Process

#: Takes what keeps it from being ready.
Say = Callable[[str], None]

#: Whose a socket is may change, and members of the tree may have a network of their own: look at all now and then.
_THOROUGH_EVERY = 1.0


class Finding(NamedTuple):
    is_own: bool
    trouble: str | None
    """Who else listens there."""


async def until_listening(room: Room, process: Process, port: int, say: Say) -> None:
    looker = Looker(room, process, port)
    attempt = 0
    while True:
        finding = await looker.look()
        if finding.is_own:
            return
        say(finding.trouble or readiness.nobody_listens(port))
        await asyncio.sleep(readiness.pause(attempt))
        attempt += 1


class Looker:
    """Looks for listeners on one port. Cheap as long as nothing has changed since the last time."""

    def __init__(self, room: Room, process: Process, port: int) -> None:
        self._room = room
        self._process = process
        self._port = port
        self._known: set[int] | None = None
        self._finding = Finding(False, None)
        self._thorough_at = 0.0

    async def look(self) -> Finding:
        sockets = self._quickly()
        if sockets is None:
            sockets = await asyncio.to_thread(self._sockets)
        now = time.monotonic()
        if sockets != self._known or now >= self._thorough_at:
            self._finding = await self._judge(sockets)
            self._known = sockets
            self._thorough_at = now + _THOROUGH_EVERY
        return self._finding

    def _quickly(self) -> set[int] | None:
        """As _sockets, where that takes but a moment."""
        pid = self._process.pid or 0
        found = sock_diag.listening_sockets(self._port) if listeners.is_in_our_network(pid) else None
        return None if found is None else {inode for _, inode in found}

    def _sockets(self) -> set[int]:
        """Those that listen on the port where the command's own process is."""
        return listeners.listening_sockets(self._process.pid or 0).get(self._port, set())

    async def _judge(self, sockets: set[int]) -> Finding:
        tree = await self._tree()
        own, everywhere = await asyncio.to_thread(self._own, tree)
        foreign = sockets - own
        is_own = bool(sockets & own) or everywhere
        if not foreign:
            return Finding(is_own, None)
        holder = await asyncio.to_thread(listeners.owner_of_sockets, foreign)
        if holder is not None and holder in await self._tree():
            return Finding(True, None)  # born while we looked
        return Finding(is_own, self._told(readiness.held_by_another(self._port, holder)))

    def _told(self, trouble: str) -> str:
        if trouble != self._finding.trouble:
            note("ready-trouble", process=self._process.id, what=trouble)
        return trouble

    def _own(self, tree: list[int]) -> tuple[set[int], bool]:
        """All sockets of the tree, and whether one of them listens on the port, in whichever network."""
        return listeners.sockets_of(tree), self._port in listeners.listening(tree)

    async def _tree(self) -> list[int]:
        try:
            return list((await self._room.keeper.request("tree", id=self._process.id))["pids"])
        except Refused:  # no such bundle: it is over
            return []
