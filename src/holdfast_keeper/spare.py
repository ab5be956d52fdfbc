"""A process forked ahead of time that becomes the next command.

Forking costs a millisecond and joining a cgroup several; a spare has paid both before anyone asks. It waits for the
directory of a bundle, sets itself up as the spec in there says, claims the bundle and execs. The claim is a rename:
of the spare and a keeper that recovers after a crash, only one can have it, so a command that was given up never
runs, and one that runs is always recorded.
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

from holdfast_keeper import bundle, depot, groups, kernel, points

#: A spare that fails says so in one datagram; one that runs the command says nothing more.
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

    def become(self, directory: str, terminal: int | None) -> None:
        """Let it run the command of this bundle, on this terminal. Raises OSError when the spare is no more."""
        socket.send_fds(self.conversation, [os.fsencode(directory)], [] if terminal is None else [terminal])

    def failure(self) -> tuple[str, int | None, str] | None:
        """Once the conversation is readable: stage, errno and text of what went wrong; None when it says nothing."""
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
    """The spare's own life, in a cgroup that it still has to join. Ends in exec or _exit, whatever happens."""
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
        _rehearse()
        directory, fds = depot.receive_raw(conversation)
        if directory:
            _become(conversation, os.fsdecode(directory), *fds)
    except BaseException as unexpected:  # noqa: BLE001 - whatever it is, it must not return into the keeper's stack
        with contextlib.suppress(OSError):
            conversation.send(_report("setup", unexpected))
    os._exit(127)


def close_all_but(kept: int) -> None:
    """Of what a fork brought along, only the three standard streams and this one are left."""
    os.closerange(3, kept)
    os.closerange(kept + 1, _MAX_FD)


def _become(conversation: socket.socket, directory: str, terminal: int | None = None) -> None:
    stage = "setup"
    claimed = False
    try:
        with open(f"{directory}/{bundle.SPEC}", "rb") as file:
            spec = json.load(file)
        stage = "terminal" if terminal is not None else "setup"
        _take_streams(directory, spec, terminal)
        stage = "cwd"
        os.chdir(spec["cwd"])
        stage = "exec"
        os.umask(spec["umask"])
        program = _find_program(spec["argv"][0], spec["env"])
        points.reach("spare-ready")
        os.rename(f"{directory}/{bundle.pending(os.getpid())}", f"{directory}/{bundle.STATE}")
        claimed = True
        os.execve(program, spec["argv"], spec["env"])
    except (OSError, ValueError) as failed:
        if claimed:
            os.rename(f"{directory}/{bundle.STATE}", f"{directory}/void")
        conversation.send(_report(stage, failed))


def _rehearse() -> None:
    """Go through the motions once: pages that the keeper and the spare share are copied now and not during a start."""
    spec = json.loads(json.dumps({"argv": ["sh"], "env": dict(os.environ), "pty": False, "split": False}))
    with contextlib.suppress(OSError):
        _find_program(spec["argv"][0], {"PATH": "/nowhere:/bin"})
        with open(os.devnull, "rb") as file:
            file.read()
        os.close(os.open(os.devnull, os.O_RDWR))
        os.umask(os.umask(0o077))
        os.rename("/nowhere/a", "/nowhere/b")


def _take_streams(directory: str, spec: dict[str, object], terminal: int | None) -> None:
    if terminal is not None:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        streams = (terminal, terminal, terminal)
    else:
        # Read-write, so that a moment without a reader is no SIGPIPE for the command.
        out = os.open(f"{directory}/{bundle.FIFO['out']}", os.O_RDWR)
        err = os.open(f"{directory}/{bundle.FIFO['err']}", os.O_RDWR) if spec["split"] else out
        source = f"{directory}/{bundle.STDIN}" if spec["stdin"] else os.devnull
        streams = (os.open(source, os.O_RDONLY), out, err)
    for number, fd in enumerate(streams):
        os.dup2(fd, number, inheritable=True)


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
    """What the keeper ignores must not be ignored by commands."""
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
