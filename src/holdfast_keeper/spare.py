"""A spare: a process forked ahead of time that becomes the next command (prefork child).

A fork takes a millisecond and joining a cgroup several; a spare has done both before a start is requested. It waits for
the directory of a bundle, sets itself up by the spec in it, claims the bundle and execs. The claim is a rename: of
the spare and a keeper that recovers after a crash, only one succeeds. So a start that was undone never runs, and a
command that runs is always recorded.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import resource
import signal
import socket
import sys
import termios
from typing import NoReturn

from holdfast_keeper import bundle, failpoints, fd_store, groups, kernel
from holdfast_keeper.witness import Witness

#: A spare that fails sends one datagram. One that runs the command sends none.
_REPORT_SIZE = 4096

_MAX_FD = 1 << 20


class Spare:
    """The keeper's side of a spare."""

    def __init__(self, pid: int, pidfd: int, start: int, conversation: socket.socket, group: str | None) -> None:
        self.pid = pid
        self.pidfd = pidfd
        self.start = start
        self.conversation = conversation
        self.group = group

    def settle(self, out: int) -> None:
        """Send it the output that it will write to, unless it gets a terminal. Raises OSError when it is dead."""
        socket.send_fds(self.conversation, [b"out"], [out])

    def become(self, directory: str, terminal: int | None) -> None:
        """Let it run the command of this bundle, on this terminal. Raises OSError when it is dead."""
        socket.send_fds(self.conversation, [os.fsencode(directory)], [] if terminal is None else [terminal])

    def failure(self) -> tuple[str, int | None, str] | None:
        """Once the connection is readable: stage, errno and text of what went wrong; None when it was closed."""
        try:
            report = self.conversation.recv(_REPORT_SIZE)
        except ConnectionError:
            return None
        return tuple(json.loads(report)) if report else None

    def dismiss(self) -> None:
        self.conversation.close()
        os.close(self.pidfd)


def fork_spare(group: str | None, file_limit: tuple[int, int]) -> Spare:
    """A spare forked by the keeper itself."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        live(theirs, group, file_limit)
    theirs.close()
    ours.setblocking(False)
    found = kernel.stat(pid)
    assert found is not None, "an unreaped child has an entry in /proc"
    return Spare(pid, os.pidfd_open(pid), found.start, ours, group)


def live(conversation: socket.socket, group: str | None, file_limit: tuple[int, int]) -> NoReturn:
    """The main function of a spare. `group` is a cgroup that it has to join. Never returns: ends in exec or _exit."""
    try:
        gc.disable()
        signal.set_wakeup_fd(-1)
        close_all_but(conversation.fileno())
        os.setsid()
        _default_signals()
        kernel.name_process("holdfast-spare")
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, file_limit)
        if group is not None:
            groups.join(group)
        witness = Witness(conversation)
        _rehearse()
        _, outs = fd_store.receive_raw(conversation)
        _take_usual_streams(*outs)
        directory, fds = fd_store.receive_raw(conversation)
        if directory:
            _become(witness, os.fsdecode(directory), *fds)
    except BaseException as unexpected:  # noqa: BLE001 - it must never return into the keeper's stack
        with contextlib.suppress(OSError):
            conversation.send(_report("setup", unexpected))
    os._exit(127)


def close_all_but(kept: int) -> None:
    """Close all inherited descriptors except the three standard streams and this one."""
    os.closerange(3, kept)
    os.closerange(kept + 1, _MAX_FD)


def _become(witness: Witness, directory: str, terminal: int | None = None) -> None:
    stage = "setup"
    claimed = False
    try:
        spec = json.loads(_read(f"{directory}/{bundle.SPEC}"))
        stage = "terminal" if terminal is not None else "setup"
        _take_streams(directory, spec, terminal)
        stage = "cwd"
        os.chdir(spec["cwd"])
        stage = "exec"
        os.umask(spec["umask"])
        program = _find_program(spec["argv"][0], spec["env"])
        if "nice" in spec:
            stage = "nice"
            os.setpriority(os.PRIO_PROCESS, 0, spec["nice"])
        stage = "limits"
        for group in spec.get("join", ()):
            groups.join(group)
        stage = "exec"
        failpoints.reach("spare-ready")
        os.rename(f"{directory}/{bundle.pending(os.getpid())}", f"{directory}/{bundle.STATE}")
        claimed = True
        witness.leave_line()
        os.execve(program, spec["argv"], spec["env"])
    except (OSError, ValueError, TypeError) as failed:
        if claimed:
            os.rename(f"{directory}/{bundle.STATE}", f"{directory}/void")
        witness.report_failure(_report(stage, failed))


def _rehearse() -> None:
    """Run the steps of a start once, so that pages shared with the keeper are copied now and not during the start."""
    spec = {"argv": ["sh"], "env": {f"VARIABLE_{number}": "x" * 50 for number in range(100)}, "pty": False}
    json.loads(json.dumps(spec).encode())
    with contextlib.suppress(OSError):
        _find_program("sh", {"PATH": "/nowhere:/bin"})
        _read(os.devnull)
        for number in range(3):
            os.dup2(number, number, inheritable=True)
        os.close(os.open(os.devnull, os.O_RDWR))
        os.umask(os.umask(0o077))
        os.chdir(os.getcwd())
        os.rename(f"{os.devnull}/{bundle.pending(os.getpid())}", f"{os.devnull}/{bundle.STATE}")


def _take_streams(directory: str, spec: dict[str, object], terminal: int | None) -> None:
    """Open the streams that differ from the usual ones."""
    if terminal is not None:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        for number in range(3):
            os.dup2(terminal, number, inheritable=True)
        return
    if spec["stdin"]:
        _open_as(0, f"{directory}/{bundle.STDIN}", os.O_RDONLY)
    if spec["split"]:
        _open_as(2, f"{directory}/{bundle.FIFO['err']}", os.O_RDWR)


def _take_usual_streams(*outs: int) -> None:
    """The usual streams: no input, and one output for stdout and stderr."""
    _open_as(0, os.devnull, os.O_RDONLY)
    for out in outs:
        os.dup2(out, 1, inheritable=True)
        os.dup2(out, 2, inheritable=True)
        os.close(out)


def _open_as(number: int, path: str, flags: int) -> None:
    fd = os.open(path, flags)
    os.dup2(fd, number, inheritable=True)
    os.close(fd)


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _find_program(name: str, env: dict[str, str]) -> str:
    """As execvp finds it: a name with a slash is a path, any other is looked up in PATH."""
    if "/" in name:
        return name
    forbidden = None
    for directory in env.get("PATH", os.defpath).split(":"):
        path = os.path.join(directory or ".", name)
        if os.path.isfile(path):
            if os.access(path, os.X_OK):
                return path
            forbidden = path
    if forbidden is not None:
        return forbidden
    raise FileNotFoundError(2, "command not found", name)


def _default_signals() -> None:
    """Reset the signals that the keeper ignores: commands must not inherit that."""
    for number in signal.valid_signals():
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _report(stage: str, failed: BaseException) -> bytes:
    number = failed.errno if isinstance(failed, OSError) else None
    text = failed.strerror if isinstance(failed, OSError) and failed.strerror else str(failed)
    return json.dumps([stage, number, text[:500]]).encode()


if sys.platform != "linux":
    raise ImportError("the keeper holds commands on Linux only")
