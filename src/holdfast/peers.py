"""The user at the other end of a TCP connection within this machine, as the kernel reports it."""

from __future__ import annotations

import _socket
import os
import sys


def foreign_listener(sock: _socket.socket) -> int | None:
    """The user at the other end of a TCP connection within this machine, unless that is this user or root.

    -1 where the kernel does not show it, as for another network namespace. A secret must not be sent there: every user
    can listen on a port that is free.
    """
    server, client = sock.getpeername(), sock.getsockname()
    uids = set()
    for table, forms, any_address in _addresses(server[0], client[0]):
        try:
            with open(f"/proc/self/net/{table}", "rb") as file:
                text = file.read()
        except OSError:
            continue
        at, back = b":%04X" % server[1], b":%04X" % client[1]
        listening = [form + at + b" " + any_address + b":0000 0A" for form in (forms[0], any_address)]
        for row in (*listening, forms[0] + at + b" " + forms[1] + back):
            if (begin := text.find(b" " + row)) >= 0:
                uids.add(int(text[begin:].split(None, 7)[6]))
    return next(iter(uids - {os.geteuid(), 0}), None) if uids else -1


def foreign_client(client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """The user that opened a TCP connection within this machine, unless that is this user or root.

    None also where the kernel does not show it: the connection then comes from elsewhere.
    """
    for table, forms, _ in _addresses(client[0], server[0]):
        row = b" %b:%04X %b:%04X " % (forms[0], client[1], forms[1], server[1])
        try:
            with open(f"/proc/self/net/{table}", "rb") as file:
                text = file.read()
        except OSError:
            continue
        if (begin := text.find(row)) >= 0:
            uid = int(text[begin:].split(None, 7)[6])
            return None if uid in (os.geteuid(), 0) else uid
    return None


def _addresses(*ips: str) -> list[tuple[str, list[bytes], bytes]]:
    """The tables of the kernel, with these addresses and the one for any address as they are written there."""
    if ":" in ips[0]:
        return [("tcp6", [_hex(_socket.inet_pton(_socket.AF_INET6, ip)) for ip in ips], b"0" * 32)]
    packed = [_socket.inet_pton(_socket.AF_INET, ip) for ip in ips]
    mapped = [_hex(bytes(10) + b"\xff\xff" + ip) for ip in packed]  # a server that takes both kinds
    return [("tcp", [_hex(ip) for ip in packed], b"0" * 8), ("tcp6", mapped, b"0" * 32)]


def _hex(address: bytes) -> bytes:
    words = (address[at : at + 4] for at in range(0, len(address), 4))
    return b"".join(b"%08X" % int.from_bytes(word, sys.byteorder) for word in words)
