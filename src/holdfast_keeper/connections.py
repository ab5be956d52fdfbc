"""The event loop of the keeper and its connections: control streams, and those to holders of descriptors.

`Loop` is one thread with one epoll, timers and idle work. `Connection` is the keeper's side of a control stream
(`protocol.py`): it parses requests and sends answers. `HolderLink` is the keeper's side of a connection to a *holder*:
anchor and daemon hold duplicates of all descriptors that the keeper holds. `DescriptorStore` is what a holder has.

A datagram between keeper and holder is a JSON header and the descriptors it names. Once it is sent, the kernel has
them, even if sender and receiver die before it is read.

    keeper -> holder   {"op": "hold", "id", "names", "pid"} + descriptors; with another pid, it is another run
                       {"op": "drop", "id", "names" (null: all of them)}
    daemon -> keeper   {"op": "offer", "id", "names", "pid"} + descriptors, for each process that it holds,
                       then {"op": "offered"}
"""

from __future__ import annotations

import errno
import heapq
import json
import os
import select
import socket
import struct
import time
from array import array
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from holdfast_keeper import log, protocol

READ = select.EPOLLIN
WRITE = select.EPOLLOUT
HANGUP = select.EPOLLHUP | select.EPOLLERR

Ready = Callable[[int], None]
Due = Callable[[], None]
Descriptors = dict[str, int]

#: A peer that leaves more than this unread is disconnected.
_MOST_UNREAD = 64 << 20
#: Read at once. For a larger buffer the C library asks the kernel for memory each time.
_MOST_READ = 1 << 16
_HEADER_SIZE = 1 << 14
_CONTROL_SIZE = socket.CMSG_LEN(16 * 4)
#: At the limit of open files: before what failed is done again.
_SHORT_PAUSE = 0.5
#: Failures that are closer together belong to one episode: it is logged once.
EPISODE = 60.0


class Timer:
    __slots__ = ("due", "_run")

    def __init__(self, due: float, run: Due) -> None:
        self.due = due
        self._run: Due | None = run

    def __lt__(self, other: Timer) -> bool:
        return self.due < other.due

    def cancel(self) -> None:
        self._run = None

    def fire(self) -> None:
        if self._run is not None:
            self._run()


class _Watched(NamedTuple):
    mask: int
    ready: Ready
    since: int
    """The round in which it was registered."""
    is_first: bool
    """Its handler runs before others that are ready in the same round."""


class Loop:
    """Handlers run one after the other and must not wait. `stop` ends `run` after the current round.

    What is due, or was left for an idle moment, is done again a little later if it fails at the limit of open files.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._ready: dict[int, _Watched] = {}
        self._round = 0
        self._timers: list[Timer] = []
        self._idle: deque[Due] = deque()
        self._running = True
        self._short_at = float("-inf")

    def watch(self, fd: int, mask: int, ready: Ready, is_first: bool = False) -> None:
        """Call `ready(events)` when the descriptor is ready. A second call replaces mask and handler.

        With `is_first`, it runs before others that are ready at the same time.
        """
        known = self._ready.get(fd)
        if known is None:
            self._epoll.register(fd, mask)
        elif known.mask != mask:
            self._epoll.modify(fd, mask)
        self._ready[fd] = _Watched(mask, ready, self._round if known is None else known.since, is_first)

    def unwatch(self, fd: int) -> None:
        if self._ready.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def after(self, delay: float, run: Due) -> Timer:
        timer = Timer(time.monotonic() + delay, run)
        heapq.heappush(self._timers, timer)
        return timer

    def when_idle(self, run: Due) -> None:
        """Call it once, in a round in which no descriptor was ready."""
        self._idle.append(run)

    def stop(self) -> None:
        self._running = False

    def run(self) -> None:
        while self._running:
            events = self._epoll.poll(self._timeout(), 256)
            self._round += 1
            if len(events) > 1:
                events.sort(key=self._is_later)
            for fd, mask in events:
                watched = self._ready.get(fd)
                # A descriptor that was closed and opened again in this round is not the one of this event.
                if watched is not None and watched.since < self._round:
                    watched.ready(mask)
            self._fire_timers()
            if not events and self._idle:
                self._fire(Timer(0.0, self._idle.popleft()))

    def close(self) -> None:
        self._epoll.close()

    def _is_later(self, event: tuple[int, int]) -> bool:
        watched = self._ready.get(event[0])
        return watched is None or not watched.is_first

    def _timeout(self) -> float | None:
        if self._idle:
            return 0
        if not self._timers:
            return None
        return max(0.0, self._timers[0].due - time.monotonic())

    def _fire_timers(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0].due <= now:
            self._fire(heapq.heappop(self._timers))

    def _fire(self, timer: Timer) -> None:
        try:
            timer.fire()
        except OSError as failed:
            if failed.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            now = time.monotonic()
            if now - self._short_at > EPISODE:
                log.write(f"keeper: what is due is tried again: {failed}")
            self._short_at = now
            timer.due = now + _SHORT_PAUSE
            heapq.heappush(self._timers, timer)


class Connection:
    """The control stream of one peer. `on_request` is called with each message, `on_close` once. Never waits."""

    def __init__(
        self,
        loop: Loop,
        sock: socket.socket,
        on_request: Callable[[Connection, protocol.Message], None],
        on_close: Callable[[Connection], None],
    ) -> None:
        self._loop = loop
        self._sock = sock
        self._on_request = on_request
        self._on_close = on_close
        self._decoder = protocol.Decoder()
        self._unsent = bytearray()
        self.is_open = True
        #: Whether it sent `hello`: then it receives facts.
        self.is_daemon = False
        #: Whether it sent `leave`: the daemon stops on purpose.
        self.has_left = False
        self.peer_pid = peer(sock)[0]
        sock.setblocking(False)
        loop.watch(sock.fileno(), READ, self._ready)

    def answer(self, rid: Any, ok: protocol.Message) -> None:
        self.send({"rid": rid, "ok": ok})

    def refuse(self, rid: Any, code: str, message: str) -> None:
        self.send({"rid": rid, "error": {"code": code, "message": message}})

    def send(self, message: protocol.Message) -> None:
        if not self.is_open:
            return
        self._unsent += protocol.encode(message)
        self._flush()

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._loop.unwatch(self._sock.fileno())
            self._sock.close()
            self._on_close(self)

    def _flush(self) -> None:
        try:
            sent = self._sock.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.close()
            return
        del self._unsent[:sent]
        if len(self._unsent) > _MOST_UNREAD:
            self.close()
        else:
            self._loop.watch(self._sock.fileno(), READ | WRITE if self._unsent else READ, self._ready)

    def _ready(self, events: int) -> None:
        if events & WRITE:
            self._flush()
        if self.is_open and events & ~WRITE:
            self._read()

    def _read(self) -> None:
        try:
            data = self._sock.recv(_MOST_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        try:
            messages = self._decoder.feed(data)
        except (protocol.ProtocolError, RecursionError):
            data, messages = b"", []
        for message in messages:
            self._on_request(self, message)
        if not data:
            self.close()


#: The connection and the `rid` of a request that is answered later.
ReplyTo = tuple[Connection, Any]


class Refusal(Exception):
    """The request is refused: code and text of the answer."""


def is_owner(sock: socket.socket) -> bool:
    """Whether the peer runs as our own user, or as root."""
    return peer(sock)[1] in (os.geteuid(), 0)


def peer(sock: socket.socket) -> tuple[int, int, int]:
    """Process, user and group that connected."""
    pid, uid, gid = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid, gid


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
        """The anchor executes this program: see `renew.py`."""
        self._send({"op": "renew", "argv": argv}, [])

    def close(self) -> None:
        self._loop.unwatch(self.socket.fileno())
        self.socket.close()
        while self._queue:
            _close_all(self._queue.popleft()[1])

    def _send(self, header: dict[str, Any], fds: list[int]) -> None:
        if not self._queue:
            try:
                send_datagram(self.socket, header, fds)
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
                send_datagram(self.socket, header, fds)
            except OSError:
                return
            _close_all(fds)
            self._queue.popleft()
        self._loop.watch(self.socket.fileno(), READ, self._ready)

    def _read(self) -> None:
        try:
            received = receive_datagram(self.socket)
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


def send_datagram(sock: socket.socket, header: dict[str, Any], fds: list[int]) -> None:
    socket.send_fds(sock, [json.dumps(header).encode()], fds)


def receive_datagram(sock: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next datagram; None at the end of the connection. Raises BlockingIOError when there is none yet."""
    try:
        data, fds = receive_raw(sock)
    except ConnectionError:
        return None
    return (json.loads(data), fds) if data else None


def receive_raw(sock: socket.socket) -> tuple[bytes, list[int]]:
    """A datagram and its descriptors, not inheritable: recv_fds would leave them inheritable."""
    try:
        data, control, _, _ = sock.recvmsg(_HEADER_SIZE, _CONTROL_SIZE, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        # The peer closed it with something unread. The kernel says that once, and before what the peer sent.
        data, control, _, _ = sock.recvmsg(_HEADER_SIZE, _CONTROL_SIZE, socket.MSG_CMSG_CLOEXEC)
    return data, [fd for _, _, rights in control for fd in array("i", rights[: len(rights) // 4 * 4])]
