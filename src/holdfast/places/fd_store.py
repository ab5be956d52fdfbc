"""Duplicates of the keeper's descriptors, held by the daemon so that no two crashes lose them.

They are given back to a keeper that lost them. A terminal's settings are read from them; nothing else is done.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import socket
from array import array
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast import fast_json
from holdfast.places.keeper_link import Note

_HEADER_SIZE = 4096
_CONTROL_SIZE = socket.CMSG_LEN(16 * 4)
_FETCHED_AT_ONCE = 16
_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 1.0
#: A deposit is safe with the kernel; fetching it at once would take time from the start that it belongs to.
_FETCH_PAUSE = 0.03

Descriptors = dict[str, int]


class FdStore:
    """`connect` opens a descriptor channel to the keeper that is there. It raises OSError when there is none."""

    def __init__(self, connect: Callable[[], Awaitable[socket.socket]], note: Note) -> None:
        self._connect = connect
        self._note = note
        self._hurry = asyncio.Event()
        self.held: dict[str, Descriptors] = {}
        #: The pid that they belong to: another pid of the same process is another run.
        self._pids: dict[str, int | None] = {}

    def hurry(self) -> None:
        """A keeper has connected: try to reach it now."""
        self._hurry.set()

    async def run(self) -> None:
        """Hold what the keeper deposits, for ever; on a new connection whenever the last one was cut."""
        pause = _FIRST_PAUSE
        while True:
            self._hurry.clear()
            if await self._serve_connection():
                pause = _FIRST_PAUSE
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._hurry.wait()
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _serve_connection(self) -> bool:
        """Until the connection is cut; whether there was one."""
        try:
            sock = await self._connect()
        except OSError:
            return False
        with sock:
            return await self._exchange(sock)

    def hold(self, process_id: str, names: list[str], fds: list[int], pid: int | None = None) -> None:
        if process_id in self.held and self._pids.get(process_id) != pid:
            self.drop(process_id, None)
        self._pids[process_id] = pid
        mine = self.held.setdefault(process_id, {})
        for name, fd in zip(names, fds, strict=False):
            if name in mine:
                os.close(mine[name])
            mine[name] = fd

    def drop(self, process_id: str, names: list[str] | None) -> None:
        """Close some of its descriptors; all of them with None."""
        mine = self.held.get(process_id, {})
        for name in list(mine) if names is None else names:
            fd = mine.pop(name, None)
            if fd is not None:
                os.close(fd)
        if not mine:
            self.held.pop(process_id, None)
            self._pids.pop(process_id, None)

    async def _exchange(self, sock: socket.socket) -> bool:
        """Offer what is held, then take deposits until the connection is cut; whether the offer was sent."""
        try:
            for process_id, fds in list(self.held.items()):
                header = {"op": "offer", "id": process_id, "names": list(fds), "pid": self._pids.get(process_id)}
                await _send(sock, header, list(fds.values()))
            await _send(sock, {"op": "offered"}, [])
        except OSError:
            return False
        await self._listen(sock)
        return True

    async def _listen(self, sock: socket.socket) -> None:
        """Take what is deposited, until the connection is cut."""
        loop = asyncio.get_running_loop()
        while True:
            await _is_ready(sock, loop.add_reader, loop.remove_reader)
            await asyncio.sleep(_FETCH_PAUSE)
            with contextlib.suppress(BlockingIOError):
                for number in itertools.count(1):
                    if not self._fetch(sock):
                        return
                    if number % _FETCHED_AT_ONCE == 0:
                        await asyncio.sleep(0)  # others get their turn

    def _fetch(self, sock: socket.socket) -> bool:
        """Take the next deposit; whether the connection still stands. Raises BlockingIOError when there is none."""
        try:
            data, control, flags, _ = sock.recvmsg(_HEADER_SIZE, _CONTROL_SIZE, socket.MSG_CMSG_CLOEXEC)
        except ConnectionError:
            return False
        fds = [fd for _, _, rights in control for fd in array("i", rights[: len(rights) // 4 * 4])]
        if flags & socket.MSG_CTRUNC:
            self._note("descriptors-refused", why="the limit of open files is reached")
        if data:
            self._take(fast_json.loads(data), fds)
        return bool(data)

    def _take(self, header: dict[str, Any], fds: list[int]) -> None:
        if header["op"] == "hold":
            self.hold(header["id"], header["names"], fds, header.get("pid"))
        elif header["op"] == "drop":
            self.drop(header["id"], header.get("names"))


async def _send(sock: socket.socket, header: dict[str, Any], fds: list[int]) -> None:
    data, loop = json.dumps(header).encode(), asyncio.get_running_loop()
    while True:
        try:
            socket.send_fds(sock, [data], fds)
            return
        except BlockingIOError:
            await _is_ready(sock, loop.add_writer, loop.remove_writer)


async def _is_ready(sock: socket.socket, add: Callable[..., object], remove: Callable[..., object]) -> None:
    ready = asyncio.Event()
    add(sock, ready.set)
    try:
        await ready.wait()
    finally:
        remove(sock)
