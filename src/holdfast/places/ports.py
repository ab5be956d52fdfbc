"""Which process listens on a TCP port of this machine, looked up again and again while a probe waits for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from holdfast.machine import listeners, sock_diag
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.places.base import PortState, Refused

#: Sockets are passed on, and members of the tree may have networks of their own: read all of them now and then.
_FULL_INTERVAL = 1.0


class LocalPortWatch:
    """`tree` gives the pids of a process's tree."""

    def __init__(self, tree: Callable[[ProcessId], Awaitable[list[int]]], process: HeldProcess, port: int) -> None:
        self._request_tree = tree
        self._process = process
        self._port = port
        self._known: set[int] | None = None
        self._state = PortState(False, False, None)
        self._full_at = 0.0

    async def look(self) -> PortState:
        sockets = self._sockets_now()
        if sockets is None:
            sockets = await asyncio.to_thread(self._sockets)
        now = time.monotonic()
        if sockets != self._known or now >= self._full_at:
            self._state = await self._judge(sockets)
            self._known = sockets
            self._full_at = now + _FULL_INTERVAL
        return self._state

    def _sockets_now(self) -> set[int] | None:
        """As _sockets, where that takes only microseconds."""
        pid = self._process.pid or 0
        found = sock_diag.listening_sockets(self._port) if listeners.is_in_our_network(pid) else None
        return None if found is None else {inode for _, inode in found}

    def _sockets(self) -> set[int]:
        """Those that listen on the port in the network of the command's own process."""
        return listeners.listening_sockets(self._process.pid or 0).get(self._port, set())

    async def _judge(self, sockets: set[int]) -> PortState:
        tree = await self._tree()
        own, is_elsewhere = await asyncio.to_thread(self._own, tree)
        is_own = bool(sockets & own) or is_elsewhere
        foreign = sockets - own
        if not foreign:
            return PortState(is_own, False, None)
        holder = await asyncio.to_thread(listeners.owner_of, foreign)
        if holder is not None and holder in await self._tree():
            return PortState(True, False, None)  # it was started meanwhile
        return PortState(is_own, True, holder)

    def _own(self, tree: list[int]) -> tuple[set[int], bool]:
        """All sockets of the tree, and whether one of them listens on the port, in any network."""
        return listeners.sockets_of(tree), self._port in listeners.listening(tree)

    async def _tree(self) -> list[int]:
        try:
            return await self._request_tree(self._process.id)
        except Refused:  # no such bundle: it is over
            return []
