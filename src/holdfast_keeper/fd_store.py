"""Duplicates of descriptors: what the keeper holds, the anchor and the daemon hold, too. They are its *holders*.

One datagram is a JSON header and the descriptors it names. Once it is sent, the kernel has them, even if sender and
receiver die before it is read.

    keeper -> holder   {"op": "hold", "id", "names", "pid"} + descriptors; with another pid, it is another run
                       {"op": "drop", "id", "names" (null: all of them)}
    keeper -> anchor   {"op": "renew", "argv"}: see `renew.py`
    daemon -> keeper   {"op": "offer", "id", "names", "pid"} + descriptors, for each process that it holds,
                       then {"op": "offered"}
"""

from __future__ import annotations

import json
import os
import socket
from array import array
from collections import deque
from typing import Any

from holdfast_keeper.loop import READ, WRITE, Loop

Descriptors = dict[str, int]

_HEADER_SIZE = 1 << 14
_CONTROL_SIZE = socket.CMSG_LEN(16 * 4)


def send(sock: socket.socket, header: dict[str, Any], fds: list[int]) -> None:
    socket.send_fds(sock, [json.dumps(header).encode()], fds)


def receive(sock: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next datagram; None at the end of the connection. Raises BlockingIOError when there is none yet."""
    try:
        data, fds = receive_raw(sock)
    except ConnectionError:
        return None
    return (json.loads(data), fds) if data else None


def receive_raw(sock: socket.socket) -> tuple[bytes, list[int]]:
    """A datagram and its descriptors, not inheritable: recv_fds would leave them inheritable."""
    data, control, _, _ = sock.recvmsg(_HEADER_SIZE, _CONTROL_SIZE, socket.MSG_CMSG_CLOEXEC)
    return data, [fd for _, _, rights in control for fd in array("i", rights[: len(rights) // 4 * 4])]


class DescriptorStore:
    """The descriptors that a holder keeps, by process."""

    def __init__(self) -> None:
        self.held: dict[str, Descriptors] = {}
        self.by_pid: dict[int, str] = {}
        self.pid_of: dict[str, int] = {}
        #: The anchor's: the pid and exit status of commands that it reaped and could not record yet.
        self.witnessed: dict[str, tuple[int, dict[str, Any]]] = {}

    def hold(self, process_id: str, names: list[str], fds: list[int], pid: int | None = None) -> None:
        if pid is not None:
            if self.pid_of.get(process_id, pid) != pid:
                self.drop(process_id, None)  # they are of the last run
            self.by_pid[pid] = process_id
            self.pid_of[process_id] = pid
        mine = self.held.setdefault(process_id, {})
        for name, fd in zip(names, fds, strict=False):  # at the limit of open files some do not arrive
            if name in mine:
                os.close(mine[name])
            mine[name] = fd

    def drop(self, process_id: str, names: list[str] | None) -> None:
        mine = self.held.get(process_id, {})
        for name in list(mine) if names is None else names:
            fd = mine.pop(name, None)
            if fd is not None:
                os.close(fd)
        if names is None and process_id in self.pid_of:
            self.by_pid.pop(self.pid_of.pop(process_id), None)
        if not mine:
            self.held.pop(process_id, None)


class HolderLink:
    """The keeper's connection to one holder. Never waits: what cannot be sent now is queued."""

    def __init__(self, loop: Loop, sock: socket.socket, on_message: Any, on_close: Any) -> None:
        self._loop = loop
        self.socket = sock
        self._on_message = on_message
        self._on_close = on_close
        self._queue: deque[tuple[dict[str, Any], list[int]]] = deque()
        sock.setblocking(False)
        loop.watch(sock.fileno(), READ, self._ready)

    @property
    def is_ready(self) -> bool:
        """Whether nothing is queued for it."""
        return not self._queue and self.socket.fileno() >= 0

    def hold(self, process_id: str, fds: Descriptors, **also: Any) -> None:
        self._send({"op": "hold", "id": process_id, "names": list(fds), **also}, list(fds.values()))

    def drop(self, process_id: str, names: list[str] | None = None) -> None:
        self._send({"op": "drop", "id": process_id, "names": names}, [])

    def renew(self, argv: list[str]) -> None:
        self._send({"op": "renew", "argv": argv}, [])

    def close(self) -> None:
        self._loop.unwatch(self.socket.fileno())
        self.socket.close()
        while self._queue:
            _close_all(self._queue.popleft()[1])

    def _send(self, header: dict[str, Any], fds: list[int]) -> None:
        if not self._queue:
            try:
                send(self.socket, header, fds)
                return
            except BlockingIOError:
                pass
            except OSError:
                return  # `_ready` sees that the connection is closed
        self._queue.append((header, [os.dup(fd) for fd in fds]))
        self._loop.watch(self.socket.fileno(), READ | WRITE, self._ready)

    def _ready(self, events: int) -> None:
        if events & WRITE:
            self._flush()
        if events & ~WRITE:
            self._read()

    def _flush(self) -> None:
        while self._queue:
            header, fds = self._queue[0]
            try:
                send(self.socket, header, fds)
            except OSError:
                return
            _close_all(fds)
            self._queue.popleft()
        self._loop.watch(self.socket.fileno(), READ, self._ready)

    def _read(self) -> None:
        try:
            received = receive(self.socket)
        except BlockingIOError:
            return
        if received is None:
            self.close()
            self._on_close()
        else:
            self._on_message(*received)


def _close_all(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
