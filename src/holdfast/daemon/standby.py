"""A daemon under a service manager that finds another one at work: it stands by, and takes over when that one dies.

So the service is up whenever the instance is served, whoever was first: a caller, the keeper after a crash, or the
manager. Stopping the service stops the daemon that serves.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct

from holdfast.daemon import instance, notify
from holdfast.daemon.logbook import note
from holdfast.paths import Paths

_STOP_LIMIT = 75.0


class _StopAsked(Exception):
    pass


def take_over(paths: Paths) -> int | None:
    """The lock of the instance, once whoever has it died; None when that one, or we, were stopped on purpose."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _ask_to_stop)
    try:
        while True:
            serving = _serving(paths)
            if serving is not None:
                _wait_for(*serving)
            lock = instance.take(paths, revived=True)
            if lock is not None or serving is None:
                return lock
    except _StopAsked:
        return None
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)


def _ask_to_stop(_number: int, _frame: object) -> None:
    raise _StopAsked


def _serving(paths: Paths) -> tuple[int, int] | None:
    """The pid of the daemon that serves, and a descriptor of its process; None when nobody does."""
    sock = instance.connect(paths)
    if sock is None:
        return None
    with sock:
        pid = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        try:
            return pid, os.pidfd_open(pid)
        except ProcessLookupError:
            return None


def _wait_for(pid: int, pidfd: int) -> None:
    note("standby", serving=pid)
    notify.send_state("READY=1", f"STATUS=Standing by: another daemon (pid {pid}) serves this instance")
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    try:
        poll.poll()
    except _StopAsked:
        notify.send_state("STOPPING=1")
        signal.pidfd_send_signal(pidfd, signal.SIGTERM)
        poll.poll(_STOP_LIMIT * 1000)
        raise
    finally:
        os.close(pidfd)
