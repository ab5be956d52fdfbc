"""Which process listens on which TCP port.

Everything here reads /proc and is meant for a thread. What may not be read, as the descriptors of another user's
process, counts as absent.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from functools import cache

from holdfast.machine import proc, sock_diag

_LISTENING = b"0A"
_SOCKET = "socket:["


def listening(pids: Collection[int]) -> dict[int, int]:
    """Ports that one of these processes listens on, over IPv4 or IPv6, each with a process that does.

    Each is looked up in its own network namespace.
    """
    tables: dict[str, dict[int, set[int]]] = {}
    found: dict[int, int] = {}
    for pid in pids:
        inodes = _sockets(pid)
        namespace = _namespace(pid) if inodes else None
        if namespace is None:
            continue
        if namespace not in tables:
            tables[namespace] = listening_sockets(pid)
        for port, sockets in tables[namespace].items():
            if not inodes.isdisjoint(sockets):
                found.setdefault(port, pid)
    return found


def owner_of(inodes: set[int]) -> int | None:
    """A process that has one of these sockets open; None when there is none, or it is hidden. Reads all processes."""
    if not inodes:
        return None
    return next((pid for pid in proc.all_pids() if not inodes.isdisjoint(_sockets(pid))), None)


def sockets_of(pids: Collection[int]) -> set[int]:
    """The inodes of all sockets that these processes have open."""
    return set().union(*map(_sockets, pids))


def listening_sockets(pid: int | str) -> dict[int, set[int]]:
    """For each port, the inodes of the sockets that listen on it in this process's network namespace."""
    pairs = sock_diag.listening_sockets() if is_in_our_network(pid) else None
    if pairs is None:
        pairs = [pair for name in ("tcp", "tcp6") for pair in _listeners(_lines(f"/proc/{pid}/net/{name}"))]
    found: dict[int, set[int]] = {}
    for port, inode in pairs:
        found.setdefault(port, set()).add(inode)
    return found


def is_in_our_network(pid: int | str) -> bool:
    return pid == "self" or _namespace(pid) == _our_namespace()


@cache
def _our_namespace() -> str | None:
    return _namespace("self")


def _listeners(lines: Iterable[bytes]) -> Iterator[tuple[int, int]]:
    """Port and inode of each listening socket in the lines of a table. A malformed line is skipped."""
    for line in lines:
        fields = line.split(None, 10)
        if len(fields) < 10 or fields[3] != _LISTENING:
            continue
        try:
            yield int(fields[1].rpartition(b":")[2], 16), int(fields[9])
        except ValueError:
            continue


def _lines(path: str) -> list[bytes]:
    try:
        with open(path, "rb") as file:
            return file.readlines()
    except OSError:  # it ended, or there is no such protocol
        return []


def _sockets(pid: int) -> set[int]:
    """The inodes of the sockets that a process has open."""
    directory = f"/proc/{pid}/fd"
    try:
        names = os.listdir(directory)
    except OSError:  # it ended, or may not be read
        return set()
    targets = (proc.link(f"{directory}/{name}") for name in names)
    return {int(target[len(_SOCKET) : -1]) for target in targets if target.startswith(_SOCKET)}


def _namespace(pid: int | str) -> str | None:
    return proc.link(f"/proc/{pid}/ns/net") or None
