"""The third pair of hands: duplicates of the keeper's descriptors, held so that no two deaths take them away.

Nothing is ever done with them but to give them back to a keeper that has lost them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from typing import Any

from holdfast.backends.base import Backend
from holdfast.daemon.logbook import note

_HEADER_SIZE = 4096
_MOST_AT_ONCE = 16
_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 1.0
#: What is deposited is safe with the kernel; to fetch it at once would only take time from the start it is for.
_FETCH_PAUSE = 0.03

Descriptors = dict[str, int]


class Depot:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._hurry = asyncio.Event()
        self.held: dict[str, Descriptors] = {}
        #: Whose they are: another pid of the same process is another run.
        self._pids: dict[str, int | None] = {}

    def hurry(self) -> None:
        """There is a keeper: no need to wait any longer before trying to reach it."""
        self._hurry.set()

    async def run(self) -> None:
        """Hold what the keeper deposits, for ever; over a new line whenever the last one was cut."""
        pause = _FIRST_PAUSE
        while True:
            self._hurry.clear()
            if await self._hold_over_one_line():
                pause = _FIRST_PAUSE
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._hurry.wait()
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _hold_over_one_line(self) -> bool:
        """Until the line is cut; whether there was one."""
        try:
            sock = await self._backend.connect_depot()
        except OSError:
            return False
        with sock:
            return await self._converse(sock)

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
        """Let go of some of its descriptors, of all of them with None."""
        mine = self.held.get(process_id, {})
        for name in list(mine) if names is None else names:
            fd = mine.pop(name, None)
            if fd is not None:
                os.close(fd)
        if not mine:
            self.held.pop(process_id, None)
            self._pids.pop(process_id, None)

    async def _converse(self, sock: socket.socket) -> bool:
        """Offer what is held, then listen until the line is cut; whether the offer was heard."""
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
        """Take what is deposited, until the line is cut."""
        while True:
            await _readable(sock)
            await asyncio.sleep(_FETCH_PAUSE)
            with contextlib.suppress(BlockingIOError):
                while self._fetch(sock):  # noqa: ASYNC110 - nothing is awaited here, others get their turn
                    await asyncio.sleep(0)
                return

    def _fetch(self, sock: socket.socket) -> bool:
        """Take the next deposit; whether the line is still there. Raises BlockingIOError when there is none."""
        try:
            data, fds, flags, _ = socket.recv_fds(sock, _HEADER_SIZE, _MOST_AT_ONCE)
        except ConnectionError:
            return False
        for fd in fds:
            os.set_inheritable(fd, False)  # recv_fds does not see to it
        if flags & socket.MSG_CTRUNC:
            note("descriptors-refused", why="no room for more open files")
        if data:
            self._take(json.loads(data), list(fds))
        return bool(data)

    def _take(self, header: dict[str, Any], fds: list[int]) -> None:
        if header["op"] == "hold":
            self.hold(header["id"], header["names"], fds, header.get("pid"))
        elif header["op"] == "drop":
            self.drop(header["id"], header.get("names"))


async def _send(sock: socket.socket, header: dict[str, Any], fds: list[int]) -> None:
    data = json.dumps(header).encode()
    while True:
        try:
            socket.send_fds(sock, [data], fds)
            return
        except BlockingIOError:
            await _writable(sock)


async def _readable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(sock, _set, ready)
    try:
        await ready
    finally:
        loop.remove_reader(sock)


async def _writable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_writer(sock, _set, ready)
    try:
        await ready
    finally:
        loop.remove_writer(sock)


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
