"""Accepts connections, and finds where each comes from.

A caller that runs within a held process is bound to the session of that process. Without this, a command that may run
could have everything else run, or approved, by calling holdfast itself. It is decided once, when the connection is
made, from what the kernel says.
"""

from __future__ import annotations

import asyncio
import os
import resource
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from holdfast.daemon.core.log import note
from holdfast.daemon.core.registry import Registry
from holdfast.daemon.listener import file_limit
from holdfast.model.lifecycle import Requested
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.places.base import ExecutionPlace, ProcessInfo
from holdfast.records import Struct
from holdfast.wire.frames import peer_pidfd

if TYPE_CHECKING:
    import ssl

#: Accepted in one turn of the loop, so that a burst of connections delays no one else for long.
_AT_ONCE = 32
#: At the limit of open files: before clients are refused. Some files may be closed meanwhile.
_PAUSE = 0.05
#: Of the first bytes of a client that is refused.
_FIRST_BYTES = 64 << 10
#: With TLS: handshakes at once, beyond which connections are closed, and the time that each may take.
_MOST_HANDSHAKES = 200
_HANDSHAKE_TIMEOUT = 10.0
#: Failures that are closer together belong to one episode, which is logged once.
_EPISODE = 60.0

_MOST_PAST_LEADERS = 1000
_ATTEMPTS = 3
_UNTRACED = "untraced-"
#: An instance that was itself started by a held command of another one: the id of that command (`client/launch.py`).
_OUTER = "HOLDFAST_OUTER_ID"


def _shortage() -> OSError | None:
    """As `file_limit.shortage`, with one call where enough descriptors are left."""
    used = os.stat("/proc/self/fd").st_size  # their number, since Linux 6.2; before, 0
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if used and used + file_limit.HEADROOM <= limit else file_limit.shortage()


class Accepting:
    """Accepts the connections of a listening socket until `close`, which closes that socket, not the connections.

    Near the limit of open files it logs that once, and accepts each client only to send it the error; at the limit
    itself by a descriptor that is reserved for this. A client that has sent nothing yet is closed without a reply, and
    so is one with TLS.
    """

    def __init__(
        self,
        listener: socket.socket,
        backlog: int,
        protocol: Callable[[], asyncio.Protocol],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._listener = listener
        self._protocol = protocol
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._reserved = _reserve()
        self._failed_at = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[object]] = set()
        listener.setblocking(False)
        listener.listen(backlog)
        self._resume()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._listener.fileno() >= 0:
            self._loop.remove_reader(self._listener.fileno())
            self._listener.close()
        if self._reserved is not None:
            os.close(self._reserved)
            self._reserved = None

    def _resume(self) -> None:
        self._timer = None
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def _try_again(self) -> None:
        self._resume()
        self._accept(may_refuse=True)

    def _accept(self, may_refuse: bool = False) -> None:
        for _ in range(_AT_ONCE):
            short = _shortage()
            try:
                if short is not None and may_refuse:
                    self._refuse(short)
                    continue
                if short is not None:
                    self._pause()
                    return
                accepted, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as failed:
                self._log(failed)
                self._pause()
                return
            if self._tls is not None and len(self._tasks) >= _MOST_HANDSHAKES:
                accepted.close()
                continue
            accepted.setblocking(False)
            task = self._loop.create_task(self._begin(accepted), name="accept")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _begin(self, accepted: socket.socket) -> None:
        try:
            timeout = _HANDSHAKE_TIMEOUT if self._tls is not None else None
            await self._loop.connect_accepted_socket(
                self._protocol, accepted, ssl=self._tls, ssl_handshake_timeout=timeout
            )
        except OSError:
            accepted.close()  # the client has gone

    def _pause(self) -> None:
        """Clients that are connected are served meanwhile."""
        self._loop.remove_reader(self._listener.fileno())
        self._timer = self._loop.call_later(_PAUSE, self._try_again)

    def _refuse(self, short: OSError) -> None:
        """Send the error to the next client. Raises OSError where there is none, or no descriptor for it."""
        if self._reserved is not None:
            os.close(self._reserved)
        try:
            accepted, _ = self._listener.accept()
            self._log(short)
            with suppress(OSError), accepted:
                accepted.setblocking(False)
                if self._tls is None:
                    accepted.send(file_limit.refusal(accepted.recv(_FIRST_BYTES), short))
        finally:
            self._reserved = _reserve()

    def _log(self, failed: OSError) -> None:
        now = time.monotonic()
        if now - self._failed_at > _EPISODE:
            next_step = "new clients are refused: end some, or raise the limit of open files"
            note("accept-failed", why=failed, next=next_step)
        self._failed_at = now


def _reserve() -> int | None:
    """A descriptor that can be given up; None at the limit of open files."""
    try:
        return os.open("/", os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None


class BoundOrigin(Struct, frozen=True):
    """The origin of a caller that is bound to a session."""

    session: str
    """Where it cannot be traced to a process: a new name, which owns nothing."""
    is_judged: bool
    """Whether it descends from a command that was judged, or that may be so."""


class Caller(Struct, frozen=True):
    """The process that made a connection."""

    pid: int
    origin: BoundOrigin | None
    """None for a free caller."""


class CallerAncestry:
    """Finds the held process that a caller descends from."""

    def __init__(self, registry: Registry, place: ExecutionPlace) -> None:
        self._registry = registry
        self._place = place
        self._outer = os.environ.get(_OUTER)
        #: Leaders of a session, by pid: held processes, and commands that the daemon itself runs for one.
        self._leaders: dict[int, ProcessId] = {}
        #: Those that ended, for what they left behind: no other process gets their pid while their session lasts.
        self._past_leaders: dict[int, ProcessId] = {}
        self._of: dict[ProcessId, int] = {}
        for process in registry.all.values():
            self._note(process)
        registry.listen(self._note)

    def of(self, sock: socket.socket, pid: int) -> BoundOrigin | None:
        """The origin of a connection that was just made by the process with this pid; None for a free caller.

        Free is a caller whose ancestors are known up to the first process of the machine, all of them outside. Raises
        OSError where the daemon has no descriptors left to find out: a free caller would be taken for an untraced one.
        """
        short = _shortage()
        origin = self._found(sock, pid)
        if origin is not None and origin.session.startswith(_UNTRACED):
            short = short or _shortage()
            if short is not None:
                raise short
        return origin

    def _found(self, sock: socket.socket, pid: int) -> BoundOrigin | None:
        pidfd = peer_pidfd(sock, pid) if pid > 0 else None
        if pidfd is None:
            return untraced()
        try:
            origin = self._traced(pid)
            # If it lives now, all that was read is about it, and not about another process with its pid.
            return untraced() if _has_exited(pidfd) else origin
        finally:
            os.close(pidfd)

    def _traced(self, pid: int) -> BoundOrigin | None:
        for _ in range(_ATTEMPTS):  # the line is broken where an ancestor dies meanwhile: its children move
            if (last := self._walk(pid)) is not None:
                return self._origin(pid, last)
        return untraced()

    def _walk(self, pid: int) -> ProcessId | int | None:
        """The held process above it, or the pid with which its line of ancestors ends; None where that is broken."""
        keepers, start = self._place.keeper_pids, None
        ancestors = self._place.ancestors(pid)
        while pid > 1:
            if (leader := self._leaders.get(pid)) is not None:
                return leader
            info = next(ancestors, None)
            if info is None or (start is not None and info.start > start):
                return None  # gone, or replaced by another process
            if (leader := self._leader_of(info)) is not None:
                return leader
            if pid in keepers or pid == os.getpid():
                return pid
            pid, start = info.ppid, info.start
        return pid

    def _origin(self, pid: int, last: ProcessId | int) -> BoundOrigin | None:
        if isinstance(last, str):
            return self._bound(last)
        if last > 1 and last == os.getpid():
            return None  # a worker of the daemon
        marks = self._place.marks(pid)
        if marks is None:
            return untraced()
        if marks.group is not None or last > 1:
            members = (one.id for one in self._registry.all.values() if one.group and _name(one.group) == marks.group)
            return self._bound(next(members, None) or self._starting(marks.held_id))
        is_outer = marks.held_id == self._outer and marks.held_id not in self._registry.all
        return None if marks.held_id is None or is_outer else self._bound(marks.held_id)

    def _starting(self, named: str | None) -> str | None:
        """The process that is being started, if it is that one: its pid and its cgroup are not known yet."""
        process = self._registry.get(ProcessId(named)) if named else None
        return named if process is not None and isinstance(process.state, Requested) else None

    def _bound(self, process_id: str | None) -> BoundOrigin:
        process = self._registry.get(ProcessId(process_id)) if process_id else None
        if process is None:
            return untraced()
        return BoundOrigin(process.meta.acts_for or process.meta.session, process.meta.gated)

    @contextmanager
    def helping(self, pid: int, process: HeldProcess) -> Iterator[None]:
        """While a command that leads a session of its own runs for a process, started by the daemon."""
        self._leaders[pid] = process.id
        try:
            yield
        finally:
            self._end(pid)

    def _leader_of(self, found: ProcessInfo) -> ProcessId | None:
        """The process whose session it is in."""
        leader = self._leaders.get(found.session)
        if leader is None and found.session in self._past_leaders and not self._place.is_alive(found.session):
            leader = self._past_leaders[found.session]  # a leader that lives would be another one with the same pid
        return leader

    def _end(self, pid: int) -> None:
        self._past_leaders.pop(pid, None)
        self._past_leaders[pid] = self._leaders.pop(pid)
        if len(self._past_leaders) > _MOST_PAST_LEADERS:
            del self._past_leaders[next(iter(self._past_leaders))]

    def _note(self, process: HeldProcess) -> None:
        if process.meta.place is not None:
            return  # its pid is one of another place
        process_id, pid = process.meta.id, process.pid if process.is_up else None
        before = self._of.get(process_id)
        if before == pid:
            return
        if before is not None:
            del self._of[process_id]
            if self._leaders.get(before) == process_id:
                self._end(before)
        if pid is not None:
            self._of[process_id] = pid
            self._leaders[pid] = process_id


def untraced() -> BoundOrigin:
    """For a caller that is dead, unreadable, or without a known line of ancestors: it sees and approves nothing."""
    return BoundOrigin(f"{_UNTRACED}{os.urandom(8).hex()}", is_judged=True)


def _name(group: str) -> str:
    return group.rpartition("/")[2]


def _has_exited(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))
