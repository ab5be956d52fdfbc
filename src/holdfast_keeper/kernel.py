"""What the kernel is asked: system calls that Python lacks, processes in /proc, and the tree of a held command.

The tree of a command is the command and everything it started. With a cgroup, the kernel knows the members. Without,
they are found in /proc: descendants, also of the init of its sandbox, the command's session and process group, and
HOLDFAST_ID in the environment. No process is signalled by its pid alone: a pidfd is opened and the start time compared.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import signal
import struct
import termios
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_libc = ctypes.CDLL(None, use_errno=True)
#: Calls through this one keep the GIL, as a fork must.
_locked_libc = ctypes.PyDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]

_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_PUNCH_HOLE_KEEP_SIZE = 0x02 | 0x01

_PIDFD_INFO_EXIT = 1 << 3
_PIDFD_INFO_SIZE = 64
_PIDFD_GET_INFO = (3 << 30) | (_PIDFD_INFO_SIZE << 16) | (0xFF << 8) | 11
_PIDFD_EXIT_CODE_AT = 60

_F_SETPIPE_SZ = 1031
_F_GETPIPE_SZ = 1032

#: Python's own waitid does not return the resource usage.
_SYS_WAITID = {"x86_64": 247, "aarch64": 95, "riscv64": 95}.get(os.uname().machine)
_siginfo, _rusage = ctypes.create_string_buffer(128), ctypes.create_string_buffer(144)
#: What `waitid` writes there: si_code, si_pid and si_status; ru_maxrss.
_WAITED = struct.Struct("8xi4xi4xi")
_MAXRSS = struct.Struct("32xl")

_SYS_CLONE3 = 435
_SYS_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}.get(os.uname().machine)
_SCHED_ATTR = struct.Struct("IIQiIQQQ")
_SCHED_FLAG_RESET_ON_FORK = 1
#: Nanoseconds; the shortest that the kernel accepts.
_SHORT_SLICE = 100_000
_CLONE_INTO_CGROUP = 0x2_0000_0000


def become_subreaper() -> None:
    """From now on, orphans below this process become its children."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def name_process(role: str, *words: str) -> None:
    """What `top` and `ps` show: `holdfast-ROLE` (at most 15 characters) and, as arguments, `holdfast: ROLE WORDS…`."""
    _libc.prctl(_PR_SET_NAME, f"holdfast-{role}".encode(), 0, 0, 0)
    try:
        begin, end = map(int, read("/proc/self/stat").rpartition(b")")[2].split()[45:47])
        title = b"".join(os.fsencode(word) + b"\0" for word in (f"holdfast: {role}", *words))
        if len(title) <= end - begin:
            ctypes.memmove(begin, title.ljust(end - begin, b"\0"), end - begin)
    except (OSError, ValueError):
        return


def shorten_slice(pid: int = 0) -> None:
    """Have the scheduler run this process soon after it is woken, also beside commands that keep the processors busy.

    Its share of processor time stays the same, in shorter slices. Its children get normal slices. Without effect before
    Linux 6.12, and on a process with a scheduling policy of its own.
    """
    try:
        if _SYS_SCHED_SETATTR is None or os.sched_getscheduler(pid) != os.SCHED_OTHER:
            return
        nice = os.getpriority(os.PRIO_PROCESS, pid)
    except OSError:
        return
    size = _SCHED_ATTR.size
    attributes = _SCHED_ATTR.pack(size, os.SCHED_OTHER, _SCHED_FLAG_RESET_ON_FORK, nice, 0, _SHORT_SLICE, 0, 0)
    _libc.syscall(_SYS_SCHED_SETATTR, pid, attributes, 0)


def punch_hole(fd: int, start: int, length: int) -> None:
    if _libc.fallocate(fd, _PUNCH_HOLE_KEEP_SIZE, start, length):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def reaped_status(pidfd: int) -> int | None:
    """The wait status of a process that was reaped by any process (Linux 6.15 and later), else None."""
    info = bytearray(_PIDFD_INFO_SIZE)
    struct.pack_into("Q", info, 0, _PIDFD_INFO_EXIT)
    try:
        fcntl.ioctl(pidfd, _PIDFD_GET_INFO, info)
    except OSError:
        return None
    (mask,) = struct.unpack_from("Q", info, 0)
    if not mask & _PIDFD_INFO_EXIT:
        return None
    return int(struct.unpack_from("i", info, _PIDFD_EXIT_CODE_AT)[0])


class DeadChild(NamedTuple):
    status: int
    """As wait(2) encodes it."""
    peak: int | None
    """The peak of resident memory, its own or of a child that it waited for; None where it is not known."""


def dead_child(pidfd: int) -> DeadChild | None:
    """A child of ours that has ended, without reaping it; None where it is no child of ours, or lives."""
    how, peak = os.WEXITED | os.WNOHANG | os.WNOWAIT, None
    if _SYS_WAITID is None:
        try:
            seen = os.waitid(os.P_PIDFD, pidfd, how)
        except ChildProcessError:
            return None
        if seen is None:
            return None
        code, status = seen.si_code, seen.si_status
    else:
        if _libc.syscall(_SYS_WAITID, os.P_PIDFD, pidfd, _siginfo, how, _rusage) != 0:
            return None
        code, pid, status = _WAITED.unpack_from(_siginfo)
        if pid == 0:
            return None
        peak = _MAXRSS.unpack_from(_rusage)[0] * 1024 or None
    if code == os.CLD_EXITED:
        return DeadChild(status << 8, peak)
    return DeadChild(status | (0x80 if code == os.CLD_DUMPED else 0), peak)


def block_signal(number: int) -> int:
    """A descriptor that is readable while this signal is pending. It is blocked, so that it interrupts nothing."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (number,))
    mask = (1 << (number - 1)).to_bytes(128, "little")
    fd = _libc.signalfd(-1, mask, os.O_NONBLOCK | os.O_CLOEXEC)
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(fd)


def waiting_bytes(fd: int) -> int:
    """How much can be read from a pipe or terminal right now."""
    count = bytearray(4)
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return int(struct.unpack("i", count)[0])


def pipe_state(fd: int) -> tuple[bool, bool]:
    """Whether a pipe has something to read, and whether no process can write to it any more."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    ready = poll.poll(0)
    events = ready[0][1] if ready else 0
    is_over = bool(events & select.POLLHUP)
    # poll looks for input first and for writers afterwards: what was written in between is still there.
    return bool(events & select.POLLIN) or (is_over and waiting_bytes(fd) > 0), is_over


def grow_pipe(fd: int, size: int) -> int:
    """Try to enlarge a pipe. Returns its size afterwards."""
    try:
        return fcntl.fcntl(fd, _F_SETPIPE_SZ, size)
    except OSError:
        return fcntl.fcntl(fd, _F_GETPIPE_SZ)


def set_window_size(fd: int, cols: int, rows: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def fork_into(group: str | None) -> int:
    """As os.fork, for a process without threads: the child is in the cgroup from the start.

    Joining a cgroup later makes every fork and exit on the machine wait for some milliseconds. Where the kernel, or a
    sandbox, does not support it, the child joins after the fork.
    """
    if group is None:
        return os.fork()
    directory = os.open(group, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        arguments = struct.pack("11Q", _CLONE_INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, directory)
        pid = int(_locked_libc.syscall(_SYS_CLONE3, arguments, len(arguments)))
    finally:
        os.close(directory)
    if pid >= 0:
        return pid
    pid = os.fork()
    if pid == 0:
        with open(f"{group}/cgroup.procs", "w") as file:
            file.write("0")
    return pid


_boot_id = ""


def boot_id() -> str:
    global _boot_id
    if not _boot_id:
        _boot_id = read("/proc/sys/kernel/random/boot_id").decode().strip()
    return _boot_id


def read(path: str) -> bytes:
    """A small file of /proc or a cgroup, in one call."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 65536)
    finally:
        os.close(fd)


class Stat(NamedTuple):
    """The fields of /proc/PID/stat that are used here."""

    pid: int
    state: str
    ppid: int
    pgrp: int
    session: int
    start: int
    exit_status: int

    @property
    def is_dead(self) -> bool:
        """A zombie is not running, however late its parent reaps it."""
        return self.state in "ZXx"


def stat(pid: int) -> Stat | None:
    """The process with this pid now; None when there is none."""
    try:
        fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Stat(
        pid,
        fields[0].decode(),
        int(fields[1]),
        int(fields[2]),
        int(fields[3]),
        int(fields[19]),
        int(fields[49]),
    )


def is_ours(pid: int) -> bool:
    """Whether /proc shows us the exit status of this process. Of another user's process it shows 0."""
    try:
        _, _, users = read(f"/proc/{pid}/status").partition(b"\nUid:")
    except OSError:
        return False
    return set(users.partition(b"\n")[0].split()) == {str(os.geteuid()).encode()}


def open_process(pid: int, start: int) -> int | None:
    """A pidfd for exactly this process: pid and start time must both match. None when it is gone."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return None
    found = stat(pid)
    if found is None or found.start != start:
        os.close(pidfd)
        return None
    return pidfd


class TreeMember(NamedTuple):
    pid: int
    start: int


class Tree(NamedTuple):
    """A held command with everything it spawned."""

    process_id: str
    leader: TreeMember
    group: str | None
    """Its cgroup, where it has one."""
    boot: str
    """The boot id of the machine when it ran."""
    init: TreeMember | None = None
    """The init of its sandbox: not a member, but orphans of the command become its children."""

    def members(self) -> list[TreeMember]:
        """The living members, the leader first if it lives."""
        if self.boot != boot_id():
            return []
        found = set(_in_group(self.group)) if self.group is not None else set(_in_proc(self))
        return sorted(found, key=lambda member: (member != self.leader, member.start, member.pid))

    def force(self) -> None:
        """Send SIGKILL to every member. Without cgroup.kill, a fork at this moment may escape: call it again."""
        if self.group is not None and _kill_group(self.group):
            return
        for member in self.members():
            send_signal(member, signal.SIGKILL)


def send_signal(member: TreeMember, signum: int) -> bool:
    """Signal exactly this process. Returns whether it was sent."""
    pidfd = open_process(*member)
    if pidfd is None:
        return False
    try:
        signal.pidfd_send_signal(pidfd, signum)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(pidfd)
    return True


def is_alive(member: TreeMember) -> bool:
    found = stat(member.pid)
    return found is not None and found.start == member.start and not found.is_dead


def in_process_group(members: Iterable[TreeMember], pgrp: int) -> list[TreeMember]:
    stats = ((member, stat(member.pid)) for member in members)
    return [member for member, found in stats if found is not None and found.pgrp == pgrp]


def _in_group(group: str) -> Iterator[TreeMember]:
    try:
        if b"populated 0" in read(f"{group}/cgroup.events"):
            return
    except OSError:
        return
    for directory, _, _ in os.walk(group):
        for pid in _pids_in(f"{directory}/cgroup.procs"):
            found = stat(pid)
            if found is not None and not found.is_dead:
                yield TreeMember(found.pid, found.start)


def _pids_in(path: str) -> list[int]:
    try:
        with open(path) as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def _kill_group(group: str) -> bool:
    try:
        with open(f"{group}/cgroup.kill", "w") as file:
            file.write("1")
    except OSError:
        return False
    return True


def _in_proc(tree: Tree) -> Iterator[TreeMember]:
    stats = [found for found in map(stat, _pids()) if found is not None]
    leader = tree.leader
    below = _descendants(stats, leader)
    if tree.init is not None:
        below |= _descendants(stats, tree.init) - {tree.init.pid}
    mark = f"HOLDFAST_ID={tree.process_id}".encode()
    # Once the leader is reaped, its pid may be reused, and with it the ids of its session and process group.
    has_leader = any((found.pid, found.start) == leader for found in stats)
    for found in stats:
        if found.is_dead or found.start < leader.start:
            continue
        is_near = found.pid in below or (has_leader and leader.pid in (found.session, found.pgrp))
        if is_near or _is_marked(found.pid, mark):
            yield TreeMember(found.pid, found.start)


def _descendants(stats: list[Stat], leader: TreeMember) -> set[int]:
    children: dict[int, list[int]] = {}
    for found in stats:
        children.setdefault(found.ppid, []).append(found.pid)
    below: set[int] = set()
    ahead = [found.pid for found in stats if (found.pid, found.start) == leader]
    while ahead:
        pid = ahead.pop()
        below.add(pid)
        ahead.extend(children.get(pid, ()))
    return below


def _is_marked(pid: int, mark: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())
