"""Who is at the other end of a Unix socket, as the kernel knows it."""

from __future__ import annotations

import asyncio
import socket
import struct


def peer_uid(transport: asyncio.Transport) -> int:
    return _credentials(transport)[1]


def peer_pid(transport: asyncio.Transport) -> int:
    """Whoever made the connection; it may have handed it to another since."""
    return _credentials(transport)[0]


def _credentials(transport: asyncio.Transport) -> tuple[int, int, int]:
    sock = transport.get_extra_info("socket")
    pid, uid, gid = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid, gid
