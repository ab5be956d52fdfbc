"""Who asks for a password: whether it is sudo, and of whom it descends. Reads /proc and is meant for a thread."""

from __future__ import annotations

import os
from typing import NamedTuple

from holdfast.machine.processes import look

#: More generations than anybody has.
_MOST = 256
_LONGEST_COMMAND = 4096


class Sudo(NamedTuple):
    """A sudo that runs a helper to ask for a password."""

    pid: int
    start: str
    """With the pid, which sudo it is: numbers are used again."""
    command: str
    ancestors: list[int]
    """From itself on."""


def sudo_above(pid: int) -> Sudo | None:
    """The sudo that started this process itself; None where something else did, whatever it calls itself.

    Nobody but the system's sudo runs under that name with the rights of root.
    """
    helper = look(pid)
    parent = look(helper.ppid) if helper is not None else None
    if parent is None or parent.name != "sudo" or _effective_user(parent.pid) != 0:
        return None
    return Sudo(parent.pid, _start(parent.pid), _command(parent.pid), _ancestors(parent.pid))


def _ancestors(pid: int) -> list[int]:
    found: list[int] = []
    while pid > 1 and len(found) < _MOST and (seen := look(pid)) is not None:
        found.append(pid)
        pid = seen.ppid
    return found


def _effective_user(pid: int) -> int | None:
    for line in _read(pid, "status").splitlines():
        if line.startswith(b"Uid:"):
            return int(line.split()[2])
    return None


def _start(pid: int) -> str:
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return fields[19].decode() if len(fields) > 19 else ""


def _command(pid: int) -> str:
    """As it was called, without what our own helper added."""
    words = [os.fsdecode(word) for word in _read(pid, "cmdline").split(b"\0")[:-1]]
    if words[1:2] == ["-A"]:
        del words[1]
    return " ".join(["sudo", *words[1:]])[:_LONGEST_COMMAND]


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read(1 << 16)
    except OSError:
        return b""
