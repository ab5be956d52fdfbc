"""Which processes of a tree read its input. Reads /proc and is meant for a thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from holdfast.machine import proc
from holdfast.model.probes.prompts import Reader

#: Bounds of one reading: a process may have thousands of threads, and a tree thousands of processes.
_MOST_PIDS, _MOST_THREADS, _MOST_FILES = 200, 64, 64

#: System calls by number; on other machines the name of the kernel's function has to do.
_READS, _POLLS = {
    "x86_64": (frozenset({0, 19}), frozenset({7, 23, 232, 270, 271, 281, 441})),
    "aarch64": (frozenset({63, 65}), frozenset({22, 72, 73, 441})),
}.get(os.uname().machine, (frozenset[int](), frozenset[int]()))
_READING = ("wait_woken", "n_tty_read", "tty_read", "anon_pipe_read", "pipe_read", "pipe_wait")
_POLLING = ("poll_", "do_poll", "do_sys_poll", "do_select", "core_sys_select", "ep_poll", "do_epoll")

_WORTH: tuple[Reader, ...] = ("reading", "polling", "hidden", "busy")

IsInput = Callable[[str], bool]


def reader_of(pids: list[int], is_input: IsInput, group: int | None = None) -> Reader:
    """What the processes of a tree do about its input; on a terminal, those of its foreground process group.

    `is_input` says by its path in /proc whether an open file is that input.
    """
    found: Reader = "busy"
    for pid in pids[:_MOST_PIDS]:
        if group is None or ((info := proc.look(pid)) is not None and info.group == group):
            found = min(found, _doing(pid, is_input), key=_WORTH.index)
    return found


def is_terminal(number: int) -> IsInput:
    """Whether a file is the terminal with this number, or /dev/tty."""
    paths = (f"/dev/pts/{number}", "/dev/tty")
    return lambda file: proc.link(file) in paths


def is_pipe(fd: int) -> IsInput:
    """Whether a file is the pipe that a descriptor of ours is an end of."""
    ours = os.fstat(fd)

    def is_same(file: str) -> bool:
        try:
            theirs = os.stat(file)
        except OSError:
            return False
        return (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino)

    return is_same


def _doing(pid: int, is_input: IsInput) -> Reader:
    found: Reader = "busy"
    for thread in _threads(pid):
        found = min(found, _thread_doing(pid, thread, is_input), key=_WORTH.index)
        if found == "reading":
            break
    return found


def _thread_doing(pid: int, thread: str, is_input: IsInput) -> Reader:
    """By its current system call, where that may be read; else by the kernel function that it sleeps in."""
    call = proc.read(pid, f"task/{thread}/syscall").decode()
    if call and _READS:
        number, _, more = call.partition(" ")
        if number.isdigit() and int(number) in _READS:
            return "reading" if is_input(f"/proc/{pid}/fd/{int(more.split()[0], 16)}") else "busy"
        return "polling" if number.isdigit() and int(number) in _POLLS else "busy"
    function = proc.read(pid, f"task/{thread}/wchan").decode()
    if function.startswith(_READING):
        return "reading" if any(map(is_input, _files(pid))) else "busy"
    if function.startswith(_POLLING):
        return "polling"
    return "hidden" if function in ("", "0") and _sleeps(pid) and not _may_look(pid) else "busy"


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")[:_MOST_THREADS]
    except OSError:
        return []


def _files(pid: int) -> Iterator[str]:
    try:
        names = os.listdir(f"/proc/{pid}/fd")[:_MOST_FILES]
    except OSError:
        names = []
    return (f"/proc/{pid}/fd/{name}" for name in names)


def _may_look(pid: int) -> bool:
    return os.access(f"/proc/{pid}/fd", os.R_OK)


def _sleeps(pid: int) -> bool:
    return proc.read(pid, "stat").rpartition(b")")[2].split()[:1] == [b"S"]
