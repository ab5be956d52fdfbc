"""The process at the other end of a Unix socket, as the kernel reports it."""

from __future__ import annotations

import _socket
import struct


def peer_credentials(sock: _socket.socket) -> tuple[int, int, int]:
    """Pid, uid and gid of the process that made the connection. It may have passed it to another one since."""
    pid, uid, gid = struct.unpack("3i", sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12))
    return pid, uid, gid
