"""Which session a host program has open: its hooks record it for the MCP server, which the same program started.

A binding is a small file in the instance's home, named by the pid and the start time of the host. It has the session.
"""

from __future__ import annotations

import os
import re

from holdfast import files, light_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    #: Pid and start time: together they name one process for ever.
    Host: TypeAlias = tuple[int, int]

_SHAPE = re.compile(r"[\w.:-]{1,200}", re.ASCII)
#: A server may be started through a wrapper or two.
_MOST_ANCESTORS = 4


def session_name(client: str, conversation: object) -> str | None:
    """The session of a conversation of that program; None for what is no id."""
    if not isinstance(conversation, str) or not _SHAPE.fullmatch(conversation):
        return None
    return f"{client.partition('-')[0]}-{conversation}"


def host_of_hook(client: str) -> Host | None:
    """The program that called this hook: the parent, or beyond the shell in between."""
    mark = f"hook {client}".encode()
    for pid in _ancestors(os.getppid()):
        if mark not in _read(pid, "cmdline").replace(b"\0", b" ").replace(b"'", b""):
            return _host(pid)
    return None


def bind(home: str, host: Host, session: str, becomes: str | None = None) -> None:
    """Note that the host has that session open, which is about to be renamed to `becomes`."""
    path = _path(home, host)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    files.replace(path, light_json.dumps({"session": session, "becomes": becomes}).encode())


def bound(home: str) -> str | None:
    """The open session of the program that started this one, where its hooks have noted it."""
    for number, pid in enumerate(_ancestors(os.getppid())):
        host = _host(pid) if number < _MOST_ANCESTORS else None
        if host is None:
            return None
        session = session_of(home, host)
        if session is not None:
            return session
    return None


def session_of(home: str, host: Host) -> str | None:
    return _said(home, host, "session")


def becoming(home: str, host: Host) -> str | None:
    """The new name of its session, where renaming was begun and may not be done."""
    return _said(home, host, "becomes")


def lock_path(home: str, host: Host) -> str:
    """Locked by the process that waits for notices of the host."""
    return f"{_path(home, host)}.lock"


def sweep(home: str) -> None:
    """Remove the files of hosts that have ended."""
    directory = f"{home}/hosts"
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return
    for name in names:
        pid, _, start = name.partition(".")[0].partition("-")
        if not (pid.isdigit() and start.isdigit()) or _host(int(pid)) != (int(pid), int(start)):
            try:
                os.unlink(f"{directory}/{name}")
            except OSError:
                continue


def _path(home: str, host: Host) -> str:
    return f"{home}/hosts/{host[0]}-{host[1]}"


def _said(home: str, host: Host, key: str) -> str | None:
    try:
        with open(_path(home, host), encoding="utf-8", errors="replace") as file:
            found = light_json.loads(file.read(4096))
    except (OSError, ValueError):
        return None
    said = found.get(key) if isinstance(found, dict) else None
    return said if isinstance(said, str) else None


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        yield pid
        fields = _stat(pid)
        pid = int(fields[1]) if fields else 0


def _host(pid: int) -> Host | None:
    fields = _stat(pid)
    return (pid, int(fields[19])) if fields else None


def _stat(pid: int) -> list[bytes]:
    """The fields behind the name: state, parent, …"""
    return _read(pid, "stat").rpartition(b")")[2].split()


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""
