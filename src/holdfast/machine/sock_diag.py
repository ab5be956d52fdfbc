"""Listening TCP sockets, requested from the kernel over netlink (sock_diag).

/proc/net/tcp shows the same, but walks through the table of all possible connections, which takes milliseconds; this
takes some microseconds. It covers our own network namespace only.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST_DUMP = 0x301
_ERROR, _DONE = 2, 3
_LISTEN = 1 << 10
_ANY_COOKIE = b"\xff" * 8

_HEADER = struct.Struct("=IHHII")
#: family, protocol, extensions, padding; states; then the socket: ports in network order, addresses, interface, cookie.
_REQUEST = struct.Struct("=BBBxI")
_SOCKET = struct.Struct("!HH32x4x")
#: Of an answer: the port it listens on, and its inode.
_PORT = struct.Struct("!H")
_PORT_AT, _INODE_AT, _ANSWER_SIZE = 4, 68, 72
_INODE = struct.Struct("=I")

_ANSWER_TIMEOUT = 1.0


def listening_sockets(port: int | None = None) -> list[tuple[int, int]] | None:
    """Port and inode of every socket that listens (on this port); None when the kernel has no answer."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, _SOCK_DIAG) as sock:
            sock.settimeout(_ANSWER_TIMEOUT)
            return [found for family in (socket.AF_INET, socket.AF_INET6) for found in _dump(sock, family, port or 0)]
    except (OSError, struct.error):  # not in this kernel or sandbox
        return None


def _dump(sock: socket.socket, family: int, port: int) -> Iterator[tuple[int, int]]:
    request = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, _LISTEN) + _SOCKET.pack(port, 0) + _ANY_COOKIE
    sock.send(_HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _REQUEST_DUMP, 1, 0) + request)
    while True:
        for kind, body in _messages(sock.recv(1 << 16)):
            if kind == _DONE:
                return
            if kind == _ERROR:
                raise OSError("sock_diag refused")
            if len(body) >= _ANSWER_SIZE:
                yield _PORT.unpack_from(body, _PORT_AT)[0], _INODE.unpack_from(body, _INODE_AT)[0]


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        length, kind, *_ = _HEADER.unpack_from(data, at)
        if length < _HEADER.size:
            raise OSError("no netlink message")
        yield kind, data[at + _HEADER.size : at + length]
        at += (length + 3) & ~3
