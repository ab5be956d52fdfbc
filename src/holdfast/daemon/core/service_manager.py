"""The daemon under a service manager: it reports its state, and stands by while another daemon serves.

So the service is up whenever the instance is served, no matter what started the daemon that serves. A daemon on
standby takes over when that one dies. Stopping the service stops the daemon that serves.
"""

from __future__ import annotations

import os
import select
import signal
import socket

from holdfast.daemon.core import instance
from holdfast.daemon.core.log import note
from holdfast.paths import Paths
from holdfast.wire.frames import peer_credentials

_VARIABLE = "NOTIFY_SOCKET"
_STOP_TIMEOUT = 75.0


def is_managed() -> bool:
    """Whether a service manager started the daemon and expects its state."""
    return bool(os.environ.get(_VARIABLE))


def send_state(*lines: str) -> None:
    """`READY=1`, `STOPPING=1`, `STATUS=…`. As sd_notify(3): without a manager nothing happens."""
    address = os.environ.get(_VARIABLE, "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):  # an abstract socket
        address = f"\0{address[1:]}"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.sendto("\n".join(lines).encode(), address)
    except OSError:
        return


class _StopRequested(Exception):
    pass


def take_over(paths: Paths) -> int | None:
    """The lock of the instance, once its holder died; None when the holder, or this daemon, was stopped on purpose."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _request_stop)
    try:
        while True:
            serving = _serving(paths)
            if serving is not None:
                _wait_for(*serving)
            lock = instance.take(paths, revived=True)
            if lock is not None or serving is None:
                return lock
    except _StopRequested:
        return None
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)


def _request_stop(_number: int, _frame: object) -> None:
    raise _StopRequested


def _serving(paths: Paths) -> tuple[int, int] | None:
    """The pid of the daemon that serves, and a pidfd of it; None when there is none."""
    sock = instance.connect(paths)
    if sock is None:
        return None
    with sock:
        pid, _, _ = peer_credentials(sock)
        try:
            return pid, os.pidfd_open(pid)
        except ProcessLookupError:
            return None


def _wait_for(pid: int, pidfd: int) -> None:
    note("standby", serving=pid)
    send_state("READY=1", f"STATUS=Standing by: another daemon (pid {pid}) serves this instance")
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    try:
        poll.poll()
    except _StopRequested:
        send_state("STOPPING=1")
        signal.pidfd_send_signal(pidfd, signal.SIGTERM)
        poll.poll(_STOP_TIMEOUT * 1000)
        raise
    finally:
        os.close(pidfd)
