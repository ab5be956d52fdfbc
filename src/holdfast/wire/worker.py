"""The worker's side of the link to the daemon (`holdfast.daemon.workers.worker` is the other side).

A worker reads requests from standard input and writes replies to standard output: JSON objects, one per line. A reply
carries `n`, the number of its request. The worker ends when its input does.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
import select
import socket
import struct
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from holdfast.title import set_title

Message = dict[str, Any]
T = TypeVar("T")

_READ_SIZE = 1 << 16
#: When memory runs out, a worker is killed before the daemon and the commands.
_OOM_SCORE = "500"
_MOST_FDS = 16
_MOST_KNOWN = 512
_CURRENT = struct.Struct("QQ")


class WorkerLink:
    """Takes over standard input and output: a library that prints cannot corrupt a reply."""

    def __init__(self) -> None:
        self._input, self._output = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1))
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for fd in (0, 1):
            os.dup2(null, fd)
        self._pending = b""

    def receive(self, wait: bool = True) -> list[Message]:
        """The requests that arrived; none only without `wait`. Raises EOFError at the end of the input."""
        requests: list[Message] = []
        while wait or select.select([self._input], [], [], 0)[0]:
            data = os.read(self._input, _READ_SIZE)
            *lines, self._pending = (self._pending + (data or b"\n")).split(b"\n")
            requests += [json.loads(line) for line in lines if line]
            if not data and not requests:
                raise EOFError
            if requests or not wait:
                break
        return requests

    def receive_connections(self) -> list[socket.socket]:
        """Connections that the daemon handed over; none if there are none yet. Raises EOFError as `receive` does."""
        with socket.socket(fileno=os.dup(self._input)) as link:
            try:
                data, fds, _, _ = socket.recv_fds(link, _READ_SIZE, _MOST_FDS, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return []
            except OSError:
                data, fds = b"", []
        if not data:
            raise EOFError
        return [socket.socket(fileno=fd) for fd in fds]

    def fileno(self) -> int:
        return self._input

    def send(self, reply: Message) -> None:
        data = json.dumps(reply, ensure_ascii=False).encode(errors="replace") + b"\n"
        while data:
            data = data[os.write(self._output, data) :]

    def serve(self, answer: Callable[[Message], Message]) -> None:
        """Answer one request after the other until the input ends."""
        with contextlib.suppress(EOFError, BrokenPipeError):
            while True:
                for request in self.receive():
                    number = request.pop("n", None)
                    self.send({"n": number, **answer(request)})


class KnownValues(Generic[T]):
    """Values by number; the least recently used ones are forgotten.

    Daemon and worker use the same numbers in the same order, so each knows what the other one still has.
    """

    def __init__(self) -> None:
        self._values: OrderedDict[int, T] = OrderedDict()

    def __contains__(self, number: int) -> bool:
        return number in self._values

    def use(self, number: int, value: T | None) -> T:
        """The value of this number: `value`, or without one the known value."""
        if value is not None:
            self._values[number] = value
        self._values.move_to_end(number)
        while len(self._values) > _MOST_KNOWN:
            self._values.popitem(last=False)
        return self._values[number]


class CurrentRequest:
    """A few bytes that daemon and worker share: the number of the request the worker is at (0: none), and a counter.

    The daemon can read them after a crash, and while the worker hangs.
    """

    def __init__(self, fd: int) -> None:
        self._shared = mmap.mmap(fd, _CURRENT.size)
        self._count = 0

    def set(self, number: int) -> None:
        self._count += 1
        _CURRENT.pack_into(self._shared, 0, number, self._count)

    def read(self) -> tuple[int, int]:
        number, count = _CURRENT.unpack_from(self._shared)
        return number, count

    @staticmethod
    def create() -> int:
        """A descriptor for both sides. The caller closes it."""
        fd = os.memfd_create("holdfast-worker", os.MFD_CLOEXEC)
        os.ftruncate(fd, _CURRENT.size)
        return fd


def lower_priority(role: str, *words: str, nice: int = 5) -> None:
    """Run behind the commands, and be the first to go when memory runs out. `ps` shows the role and the words."""
    os.nice(nice)
    set_title(role, *words)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(_OOM_SCORE)
