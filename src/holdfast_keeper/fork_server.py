"""Runs commands: by the fork server, a small C program (`fork_server.c`), or by a fork of the keeper without it.

Either way the child is a child of the keeper and in its cgroup from the start. It sends its descriptors to the holders,
records its identity, claims the bundle and execs. The claim is a rename: of the child and a keeper that recovers after
a crash, only one succeeds. So a start that was undone never runs, and a command that runs is always recorded.

A request to the fork server is one datagram: 4 bytes of flags, then words that each end with a zero byte: number of
holders · directory of the bundle · name of the pending state file · cgroup or nothing · `born` from its third field
on · the message to the holders up to the pid · directory to run in · umask · nice · number of cgroups to join, of words
of the sandbox and of arguments · these three lists · the variables. The descriptors beside it: the holders, the
terminal if there is one, what is held.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import termios
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from holdfast_keeper import bundle, cgroups, failpoints, kernel, log
from holdfast_keeper.connections import READ, WRITE, Descriptors, Loop, Timer, receive_raw

_PROGRAM = os.path.join(os.path.dirname(__file__), "fork_server")
#: What `ps` shows of it.
_TITLE = "holdfast: fork server"
#: The descriptor at which the fork server expects its connection to the keeper.
_LINE = 3
_TERMINAL, _STDIN, _SPLIT, _IN_MEMFD = 1, 2, 4, 8
#: A longer request is sent in a memfd.
_MOST_INLINE = 128 << 10
#: The errors of a kernel, or a sandbox, that does not support children for our parent.
_UNSUPPORTED = (errno.ENOSYS, errno.EPERM, errno.EINVAL)
#: A server that needs longer for one command, on a file system that hangs, is not given another one.
_STUCK = 1.0
_MAX_FD = 1 << 20


class ChildRequest(NamedTuple):
    """All that the child needs between fork and exec."""

    process_id: str
    directory: str
    """The bundle."""
    pending: str
    """The name of the state file that it claims."""
    spec: dict[str, Any]
    argc: int
    block: bytes
    """Arguments, then variables, each ended by a zero byte."""
    born: dict[str, Any]
    """Without pid and start time, which the child adds."""
    group: str | None
    joins: list[str]
    terminal: int | None
    fds: Descriptors
    """What the holders get, beside the pidfd."""
    holders: list[socket.socket]
    """The anchor first."""


class ChildAnswer(NamedTuple):
    pid: int
    """0 when it was never forked."""
    start: int
    claimed: bool
    """Whether it has become the command."""
    stage: str
    """Where it failed."""
    errno: int
    missed: int
    """A bit per holder that did not get the descriptors."""
    message: str = ""
    """Why there is no sandbox."""
    pidfd: int | None = None


OnAnswer = Callable[[ChildAnswer], None]


class _Waiting(NamedTuple):
    request: ChildRequest
    on_answer: OnAnswer
    timer: Timer


class Forks:
    """Runs children. Every request is answered once, later; `run` raises OSError when it cannot be made."""

    def __init__(self, loop: Loop, place: str, file_limit: tuple[int, int]) -> None:
        self._loop = loop
        self._place = place
        self._file_limit = file_limit
        self._server: _Server | None = None
        self._has_server = os.access(_PROGRAM, os.X_OK) and not os.environ.get("HOLDFAST_NO_FORK_SERVER")
        self._servers: set[_Server] = set()

    @property
    def has_server(self) -> bool:
        """Whether the fork server forks, and not the keeper."""
        return self._has_server

    @property
    def peak_before_exec(self) -> int:
        """No child is larger before its exec. The kernel's peak of a process outlives the exec."""
        return 2 << 20 if self._has_server else 32 << 20

    def run(self, request: ChildRequest, on_answer: OnAnswer) -> None:
        if not self._has_server:
            self._fork(request, on_answer)
            return
        if self._server is None or self._server.is_stuck:
            self._server = _Server(self._loop, self._place, self._file_limit, self._ended)
            self._servers.add(self._server)
        self._server.run(request, on_answer)

    def close(self) -> None:
        for server in self._servers:
            server.close()
        self._servers.clear()
        self._server = None

    def _ended(self, server: _Server, supported: bool) -> None:
        """A server was killed, or cannot work here: see what became of its requests."""
        self._servers.discard(server)
        if server is self._server:
            self._server = None
        if not supported:
            log.write("keeper: this system does not support the fork server; the keeper forks itself")
            self._has_server = False
        for waiting in server.close():
            try:
                if supported:
                    waiting.on_answer(_answer_of_bundle(waiting.request))
                else:
                    self._fork(waiting.request, waiting.on_answer)
            except OSError as failed:
                waiting.on_answer(ChildAnswer(0, 0, False, "setup", failed.errno or errno.EIO, 0))

    def _fork(self, request: ChildRequest, on_answer: OnAnswer) -> None:
        """Fork the keeper. The child writes what it did to a pipe that its exec closes."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        try:
            pid = kernel.fork_into(request.group)
        except OSError:
            os.close(reader)
            os.close(writer)
            raise
        if pid == 0:
            _live(request, writer, self._file_limit)
        os.close(writer)
        try:
            pidfd = os.pidfd_open(pid)
        except OSError:
            os.close(reader)
            raise

        def ready(events: int) -> None:
            self._loop.unwatch(reader)
            lines = os.read(reader, 65536).splitlines()
            os.close(reader)
            found = json.loads(lines[-1]) if lines else [pid, 0, False, "killed", 0, 0]
            on_answer(ChildAnswer(*found)._replace(pidfd=pidfd))

        self._loop.watch(reader, 0, ready)  # with no event asked for: the hangup


class _Server:
    """One fork server process and the requests that it has not answered yet."""

    def __init__(
        self, loop: Loop, place: str, file_limit: tuple[int, int], on_end: Callable[[_Server, bool], None]
    ) -> None:
        self._loop = loop
        self._on_end = on_end
        self._waiting: deque[_Waiting] = deque()
        #: The last ones of those that wait, for which there was no space in the socket.
        self._unsent: deque[ChildRequest] = deque()
        self.is_stuck = False
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            arguments = [_TITLE, place, *map(str, file_limit)]
            actions = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), _LINE)]
            os.posix_spawn(_PROGRAM, arguments, failpoints.variables(), file_actions=actions)
        ours.setblocking(False)
        self._line = ours
        loop.watch(ours.fileno(), READ, self._ready)

    def run(self, request: ChildRequest, on_answer: OnAnswer) -> None:
        if self._unsent or not self._send(request):
            self._unsent.append(request)
            self._loop.watch(self._line.fileno(), READ | WRITE, self._ready)
        self._waiting.append(_Waiting(request, on_answer, self._loop.after(_STUCK, self._look)))

    def _send(self, request: ChildRequest) -> bool:
        """Whether it is sent; False where the server has not taken enough of what was sent before."""
        flags, payload = _encode(request)
        fds = [holder.fileno() for holder in request.holders]
        fds += [] if request.terminal is None else [request.terminal]
        fds += request.fds.values()
        memfd = None
        if len(payload) > _MOST_INLINE:
            memfd = os.memfd_create("request")
            os.write(memfd, payload)
            flags, payload, fds = flags | _IN_MEMFD, b"\0", [*fds, memfd]
        try:
            socket.send_fds(self._line, [struct.pack("I", flags), payload], fds)
        except BlockingIOError:
            return False
        except ConnectionError:
            pass  # it was killed: `_answered` sees that and repeats the request
        finally:
            if memfd is not None:
                os.close(memfd)
        return True

    def close(self) -> list[_Waiting]:
        """Returns what was not answered."""
        if self._line.fileno() >= 0:
            self._loop.unwatch(self._line.fileno())
            self._line.close()
        left = list(self._waiting)
        self._waiting.clear()
        self._unsent.clear()
        for waiting in left:
            waiting.timer.cancel()
        return left

    def _look(self) -> None:
        self.is_stuck = bool(self._waiting)

    def _ready(self, events: int) -> None:
        if events & WRITE:
            while self._unsent and self._send(self._unsent[0]):
                self._unsent.popleft()
            if not self._unsent:
                self._loop.watch(self._line.fileno(), READ, self._ready)
        if events & ~WRITE:
            self._answered()

    def _answered(self) -> None:
        try:
            text, fds = receive_raw(self._line)
        except BlockingIOError:
            return
        except ConnectionError:
            text, fds = b"", []
        if not text:
            self._on_end(self, True)
            return
        answer = ChildAnswer(*json.loads(text), *fds)
        if -answer.pid in _UNSUPPORTED:
            self._on_end(self, False)
            return
        waiting = self._waiting.popleft()
        waiting.timer.cancel()
        if answer.pid < 0:
            answer = ChildAnswer(0, 0, False, "setup", -answer.pid, 0)
        elif not answer.claimed and not answer.stage:
            answer = answer._replace(stage="killed")
        waiting.on_answer(answer._replace(claimed=bool(answer.claimed)))
        if self.is_stuck and not self._waiting:
            self._on_end(self, True)  # another one has taken its place


def _encode(request: ChildRequest) -> tuple[int, bytes]:
    spec = request.spec
    sandbox = spec.get("sandbox") or []
    words = [
        str(len(request.holders)),
        request.directory,
        request.pending,
        request.group or "",
        json.dumps(request.born)[1:],
        _hold_header(request),
        spec["cwd"],
        str(spec["umask"]),
        str(spec.get("nice", "")),
        str(len(request.joins)),
        str(len(sandbox)),
        str(request.argc),
        *request.joins,
        *sandbox,
        "",
    ]
    flags = _TERMINAL * spec["pty"] | _STDIN * spec["stdin"] | _SPLIT * spec["split"]
    return flags, os.fsencode("\0".join(words)) + request.block


def _hold_header(request: ChildRequest) -> str:
    names = json.dumps([*request.fds, "pidfd"])
    return f'{{"op":"hold","id":"{request.process_id}","names":{names},"pid":'


def _answer_of_bundle(request: ChildRequest) -> ChildAnswer:
    """What became of a request whose server was killed. Afterwards its child cannot claim the bundle any more."""
    bundle.void_pending(request.directory)
    state = bundle.read_state(request.directory)
    if state is None or state.born is None:
        return ChildAnswer(0, 0, False, "killed", 0, 0)
    born = state.born
    missed = (1 << len(request.holders)) - 1
    return ChildAnswer(born["pid"], born["start"], True, "", 0, missed, pidfd=os.pidfd_open(born["pid"]))


def _live(request: ChildRequest, writer: int, file_limit: tuple[int, int]) -> NoReturn:
    """The child of the keeper between fork and exec: the same steps as in `fork_server.c`."""
    stage = "setup"
    answer: list[Any] = [os.getpid(), 0, False, stage, 0, 0]
    try:
        kept = {writer, *request.fds.values(), *(holder.fileno() for holder in request.holders)}
        kept |= {request.terminal} if request.terminal is not None else set()
        close_all_but(kept)
        os.setsid()
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, file_limit)
        found = kernel.stat(os.getpid())
        assert found is not None
        answer[1] = found.start
        answer[5] = _send_to_holders(request)
        failpoints.reach("child-deposited", os.getppid())
        born = {"pid": os.getpid(), "start": found.start, **request.born}
        stage = "born"
        bundle.write_slot(request.directory, bundle.BORN, born, request.pending)
        stage = "setup" if request.terminal is None else "terminal"
        _take_streams(request)
        spec = request.spec
        if spec.get("sandbox"):
            stage = "sandbox"  # only the fork server can enter one
            raise OSError(errno.ENOSYS, "no sandbox")
        stage = "cwd"
        os.chdir(spec["cwd"])
        stage = "exec"
        os.umask(spec["umask"])
        words = request.block.split(b"\0")[:-1]
        argv, env = words[: request.argc], dict(word.split(b"=", 1) for word in words[request.argc :])
        program = _find_program(os.fsdecode(argv[0]), env)
        if "nice" in spec:
            stage = "nice"
            os.setpriority(os.PRIO_PROCESS, 0, spec["nice"])
        stage = "limits"
        for group in request.joins:
            cgroups.join(group)
        failpoints.reach("child-ready")
        stage = "claim"
        os.rename(f"{request.directory}/{request.pending}", f"{request.directory}/{bundle.STATE}")
        failpoints.reach("child-claimed", os.getppid())
        stage = "exec"
        answer[2:4] = [True, ""]
        _write_answer(writer, answer)
        _default_signals()
        os.execve(program, argv, env)
    except BaseException as failed:  # noqa: BLE001 - it must never return into the keeper's stack
        with contextlib.suppress(OSError):
            if answer[2]:
                os.rename(f"{request.directory}/{bundle.STATE}", f"{request.directory}/void")
            answer[2:5] = [False, stage, getattr(failed, "errno", None) or errno.EINVAL]
            _write_answer(writer, answer)
    os._exit(127)


def _write_answer(writer: int, answer: list[Any]) -> None:
    with contextlib.suppress(BrokenPipeError):  # the keeper is gone: the next one reads the bundle
        os.write(writer, json.dumps(answer).encode() + b"\n")


def close_all_but(kept: set[int]) -> None:
    """Close all inherited descriptors except the three standard streams and these."""
    first = 3
    for fd in sorted(kept - {0, 1, 2}):
        os.closerange(first, fd)
        first = fd + 1
    os.closerange(first, _MAX_FD)


def _send_to_holders(request: ChildRequest) -> int:
    """Returns a bit per holder that did not take them."""
    pidfd = os.pidfd_open(os.getpid())
    header = f"{_hold_header(request)}{os.getpid()}}}".encode()
    missed = 0
    for number, holder in enumerate(request.holders):
        try:
            socket.send_fds(holder, [header], [*request.fds.values(), pidfd])
        except OSError as failed:
            if number == 0 and failed.errno == errno.EPIPE:
                os._exit(127)  # the anchor has given up on this keeper, or is dead: the next keeper decides anew
            missed |= 1 << number
    os.close(pidfd)
    return missed


def _take_streams(request: ChildRequest) -> None:
    if request.terminal is not None:
        fcntl.ioctl(request.terminal, termios.TIOCSCTTY, 0)
        for number in range(3):
            os.dup2(request.terminal, number)
        return
    _open_as(0, f"{request.directory}/{bundle.STDIN}" if request.spec["stdin"] else os.devnull, os.O_RDONLY)
    # Read-write, so that a moment without a reader does not cause a SIGPIPE in the command.
    _open_as(1, f"{request.directory}/{bundle.FIFO['out']}", os.O_RDWR)
    if request.spec["split"]:
        _open_as(2, f"{request.directory}/{bundle.FIFO['err']}", os.O_RDWR)
    else:
        os.dup2(1, 2)


def _open_as(number: int, path: str, flags: int) -> None:
    fd = os.open(path, flags)
    os.dup2(fd, number)
    os.close(fd)


def _find_program(name: str, env: dict[bytes, bytes]) -> str:
    """As execvp finds it: a name with a slash is a path, any other is looked up in PATH."""
    if "/" in name:
        return name
    forbidden = None
    for directory in os.fsdecode(env.get(b"PATH", os.fsencode(os.defpath))).split(":"):
        path = os.path.join(directory or ".", name)
        if os.path.isfile(path):
            if os.access(path, os.X_OK):
                return path
            forbidden = path
    if forbidden is not None:
        return forbidden
    raise FileNotFoundError(errno.ENOENT, "command not found", name)


def _default_signals() -> None:
    """Reset the signals that the keeper ignores: commands must not inherit that."""
    for number in signal.valid_signals():
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
