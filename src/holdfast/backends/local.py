"""This machine: the keeper's family is started here and reached over Unix sockets."""

from __future__ import annotations

import asyncio
import fcntl
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Mapping

import holdfast_keeper
from holdfast.backends.base import Backend

#: How long a family that was just started may take until it listens.
_START_BUDGET = 10.0
_FIRST_LOOK = 0.005
_SLOWEST_LOOK = 0.1

_CONTROL = "keeper.sock"
_DEPOT = "depot.sock"
_LOCK = "keeper.lock"
_LOG = "keeper.log"
_LARGEST_LOG = 1 << 20

#: Without site packages: a keeper starts in half the time and needs nothing of them. The limit on open files is the one
#: that the daemon was started with, because commands inherit it.
_BOOT = """\
import resource, sys
sys.path.insert(0, sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv.pop(1)), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
from holdfast_keeper.__main__ import main
main()
"""


class LocalBackend:
    """The keeper family of one place directory. `environ` is all that the family gets to see."""

    name = "local"

    def __init__(self, place: str, environ: Mapping[str, str], file_limit: int | None = None) -> None:
        self.place = place
        self._environ = dict(environ)
        self._file_limit = file_limit or resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._families: list[subprocess.Popen[bytes]] = []

    async def connect(self) -> socket.socket:
        """As Backend.connect. Starts a family when nobody listens, and again when that one came to nothing."""
        try:
            return _connect(self.place, _CONTROL, socket.SOCK_STREAM)
        except OSError:
            await asyncio.to_thread(self._start_family)
        return await self._await_family()

    async def connect_depot(self) -> socket.socket:
        return _connect(self.place, _DEPOT, socket.SOCK_SEQPACKET)

    async def _await_family(self) -> socket.socket:
        pause = _FIRST_LOOK
        until = asyncio.get_running_loop().time() + _START_BUDGET
        while True:
            try:
                return _connect(self.place, _CONTROL, socket.SOCK_STREAM)
            except OSError:
                if asyncio.get_running_loop().time() > until:
                    raise
            await asyncio.sleep(pause)
            pause = min(pause * 2, _SLOWEST_LOOK)
            if pause == _SLOWEST_LOOK and not _is_held(self.place):
                await asyncio.to_thread(self._start_family)

    def _start_family(self) -> None:
        """A new anchor, in a session of its own. Where another one has the place, it ends by itself."""
        self._families = [family for family in self._families if family.poll() is None]
        os.makedirs(self.place, mode=0o700, exist_ok=True)
        source = os.path.dirname(os.path.dirname(os.path.abspath(holdfast_keeper.__file__)))
        boot = [sys.executable, "-I", "-S", "-c", _BOOT, source, str(self._file_limit), self.place]
        log = _open_log(f"{self.place}/{_LOG}")
        try:
            family = subprocess.Popen(
                boot,
                cwd="/",
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        finally:
            os.close(log)
        self._families.append(family)


def _connect(directory: str, name: str, kind: socket.SocketKind) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, kind)
    sock.setblocking(False)
    # Through a descriptor, because the path of a socket has 107 bytes at most.
    try:
        fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            sock.connect(f"/proc/self/fd/{fd}/{name}")
        finally:
            os.close(fd)
    except OSError:
        sock.close()
        raise
    return sock


def _is_held(place: str) -> bool:
    """Whether a family has the place, or is just taking it."""
    try:
        fd = os.open(f"{place}/{_LOCK}", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _open_log(path: str) -> int:
    """The family's log, begun anew when it has become long."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    if os.fstat(fd).st_size > _LARGEST_LOG:
        os.ftruncate(fd, 0)
    return fd


_fits: type[Backend] = LocalBackend
