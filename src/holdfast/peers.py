"""The process at the other end of a Unix socket, as the kernel reports it."""

from __future__ import annotations

import _socket
import errno
import os
import struct

#: Linux 6.5. The `socket` module of Python does not name it yet.
_SO_PEERPIDFD = 77


def peer_credentials(sock: _socket.socket) -> tuple[int, int, int]:
    """Pid, uid and gid of the process that made the connection. It may have passed it to another one since."""
    pid, uid, gid = struct.unpack("3i", sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12))
    return pid, uid, gid


def peer_pidfd(sock: _socket.socket, pid: int) -> int | None:
    """A descriptor of that process, to be closed; None where it is gone.

    A kernel without SO_PEERPIDFD knows the pid alone: there it is the process that has the pid now.
    """
    try:
        return sock.getsockopt(_socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as refused:
        if refused.errno != errno.ENOPROTOOPT:
            return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
