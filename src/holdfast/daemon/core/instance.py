"""Exactly one daemon per home: it holds a lock for as long as it lives."""

from __future__ import annotations

import fcntl
import os
import socket
import time

from holdfast.errors import Unreachable
from holdfast.paths import Paths

#: A daemon that starts or stops may hold the lock for as long without answering.
_LOCK_TIMEOUT = 20.0
_PAUSE = 0.01


_RUNNING = b"running\n"
_STOPPED = b"stopped\n"


def take(paths: Paths, revived: bool) -> int | None:
    """The lock of the instance; None when another daemon has it and answers.

    Also None for a daemon that was started to replace a crashed one (`revived`), if another one came first and was
    stopped on purpose since. Raises Unreachable when another daemon has the lock and does not answer.
    """
    fd = os.open(paths.daemon_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if _lock(fd, paths) and not (revived and os.pread(fd, len(_STOPPED), 0) == _STOPPED):
        os.pwrite(fd, _RUNNING, 0)
        return fd
    os.close(fd)
    return None


def give_back(fd: int) -> None:
    """Release the lock and record that the daemon was stopped on purpose."""
    os.pwrite(fd, _STOPPED, 0)
    os.close(fd)


def _lock(fd: int, paths: Paths) -> bool:
    until = time.monotonic() + _LOCK_TIMEOUT
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            pass
        if (sock := connect(paths)) is not None:
            sock.close()
            return False
        if time.monotonic() > until:
            raise Unreachable(f"another daemon has {paths.home} and does not answer")
        time.sleep(_PAUSE)


def connect(paths: Paths) -> socket.socket | None:
    """A connection to the daemon that serves the instance; None when none answers."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(1.0)
    directory = os.open(paths.runtime, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sock.connect(f"/proc/self/fd/{directory}/{os.path.basename(paths.socket)}")
    except OSError:
        sock.close()
        return None
    finally:
        os.close(directory)
    return sock
