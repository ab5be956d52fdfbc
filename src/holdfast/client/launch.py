"""Finding the daemon of an instance, or starting it. There is never more than one."""

from __future__ import annotations

import _socket
import os
import struct
import sys
import time

from holdfast.errors import Denied, DiskFull, HoldfastError, Unreachable, from_wire
from holdfast.paths import make_directories
from holdfast.peers import peer_credentials
from holdfast.wire import light_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.paths import Paths

#: Longer than a daemon takes to come up with a full store on a slow disk; short enough for a user to wait.
START_LIMIT = 30.0
#: How long a busy daemon may take to accept a connection.
CONNECT_LIMIT = 10
#: After a start that failed: another daemon may just be coming up, started by another caller.
_SECOND_LOOK = 1.0
_PAUSE = 0.01
#: Between two looks whether a daemon that was stopped is back.
STOPPED_PAUSE = 0.2

_SUN_PATH = 108
#: Runs in a fresh interpreter: leaves the caller's directory, descriptors and children behind, then becomes the daemon.
_DETACH = """\
import os, sys
ready = int(sys.argv[1])
os.closerange(3, ready)
os.closerange(ready + 1, max(ready + 2, os.sysconf("SC_OPEN_MAX")))
os.chdir("/")
os.umask(0o077)
if os.fork():
    os._exit(0)
os.execv(sys.argv[2], sys.argv[2:])
"""


def connect(paths: Paths) -> _socket.socket:
    """A connection to the instance's daemon, which is started where there is none. Raises Unreachable, Denied."""
    return find(paths) or _find_or_start(paths)


def reconnect(paths: Paths) -> _socket.socket | None:
    """As `connect`, for a client that was cut and only waits: a daemon that crashed is started again.

    None where the daemon was stopped on purpose, which removes its socket: only a new request starts it again.
    """
    sock = find(paths)
    if sock is None and os.path.lexists(paths.socket):
        return _find_or_start(paths)
    return sock


def replace(paths: Paths, stop: Callable[[], None], start: Callable[[], None] | None = None) -> _socket.socket:
    """As `connect`, after `stop` has ended the daemon that serves. Meanwhile other clients wait and start none.

    `start` starts the daemon by a service manager.
    """
    import fcntl

    make_directories(paths)
    lock = _open_lock(paths)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stop()
        if start is not None:
            start()
        return find(paths) or _start(paths, time.monotonic() + START_LIMIT)
    finally:
        os.close(lock)


def find(paths: Paths) -> _socket.socket | None:
    """A connection to the instance's daemon; None when none listens."""
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        _connect(sock, paths)
        _check_owner(sock, paths)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        sock.close()
        return None
    except BlockingIOError:
        sock.close()
        raise Unreachable(f"the daemon of {paths.home} takes no calls", next="holdfast daemon status") from None
    except OSError as refused:
        sock.close()
        raise Unreachable(f"cannot reach the daemon of {paths.home}: {refused.strerror or refused}") from refused
    except HoldfastError:
        sock.close()
        raise
    return sock


def _connect(sock: _socket.socket, paths: Paths) -> None:
    # Bounds the wait for a place in the queue of a daemon that does not accept.
    sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, struct.pack("ll", CONNECT_LIMIT, 0))
    if len(os.fsencode(paths.socket)) < _SUN_PATH:
        sock.connect(paths.socket)
    else:
        directory = os.open(paths.runtime, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            sock.connect(f"/proc/self/fd/{directory}/{os.path.basename(paths.socket)}")
        finally:
            os.close(directory)
    sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, struct.pack("ll", 0, 0))


def _check_owner(sock: _socket.socket, paths: Paths) -> None:
    _pid, uid, _gid = peer_credentials(sock)
    if uid != os.geteuid():
        raise Denied(f"the daemon of {paths.home} runs as another user (uid {uid})")


def _find_or_start(paths: Paths) -> _socket.socket:
    import fcntl

    make_directories(paths)
    until = time.monotonic() + START_LIMIT
    lock = _open_lock(paths)
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return find(paths) or _start(paths, until)
            except BlockingIOError:  # another caller is starting it
                time.sleep(_PAUSE)
            if (sock := find(paths)) is not None:
                return sock
            if time.monotonic() > until:
                raise Unreachable(f"the daemon of {paths.home} is being started by another process, without success")
    finally:
        os.close(lock)


def _open_lock(paths: Paths) -> int:
    try:
        return os.open(paths.start_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as refused:
        import errno

        kind = DiskFull if refused.errno in (errno.ENOSPC, errno.EDQUOT) else HoldfastError
        raise kind(f"cannot write in {paths.home}: {refused.strerror}") from refused


def _start(paths: Paths, until: float) -> _socket.socket:
    said = _spawn_daemon(paths, until)
    second_look = time.monotonic() + (0.0 if said == b"ready\n" else _SECOND_LOOK)
    while True:
        if (sock := find(paths)) is not None:
            return sock
        if time.monotonic() > second_look:
            raise _why_not(said, paths)
        time.sleep(_PAUSE)


def _spawn_daemon(paths: Paths, until: float) -> bytes:
    """Start the daemon and return what it says: a line, or nothing when it died or took too long."""
    if not sys.executable:
        raise Unreachable("this Python does not know its own executable, so it cannot start the daemon")
    ready, write_end = os.pipe()
    log = os.open(paths.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.set_inheritable(write_end, True)
    try:
        _spawn(write_end, log, environment(paths))
    finally:
        os.close(write_end)
        os.close(log)
    try:
        return _read_line(ready, until)
    finally:
        os.close(ready)


def _spawn(ready_fd: int, log: int, env: dict[str, str]) -> None:
    python = sys.executable
    daemon = [python, "-P", "-m", "holdfast.daemon", "--ready-fd", str(ready_fd)]
    pid = os.posix_spawn(
        python,
        [python, "-I", "-S", "-c", _DETACH, str(ready_fd), *daemon],
        env,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, log, 1),
            (os.POSIX_SPAWN_DUP2, log, 2),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=range(1, 32),
    )
    os.waitpid(pid, 0)


def environment(paths: Paths) -> dict[str, str]:
    """What the daemon is given of the caller's environment. Nothing else: it may hold secrets."""
    from holdfast.model.ids import is_id
    from holdfast.secrets.environment import minimal

    env = minimal(os.environ)
    if paths.runtime == paths.home:
        env["HOLDFAST_HOME"] = paths.home  # absolute: the daemon works in another directory
    if is_id(outer := os.environ.get("HOLDFAST_ID", "")):
        env["HOLDFAST_OUTER_ID"] = outer  # a held command of another instance: to this one, its programs are free
    return env


def _read_line(fd: int, until: float) -> bytes:
    import select

    line = b""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while not line.endswith(b"\n"):
        left = until - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            return b"late"
        piece = os.read(fd, 4096)
        if not piece:
            break
        line += piece
    return line


def _why_not(said: bytes, paths: Paths) -> HoldfastError:
    if said == b"late":
        return Unreachable(f"the daemon was not ready within {START_LIMIT:.0f} s", next=f"read {paths.log}")
    try:
        error = light_json.loads(said.decode())
    except ValueError:
        error = None
    if isinstance(error, dict):
        return from_wire(error)
    return Unreachable(f"the daemon did not start: {_last_words(paths.log)}", next=f"read {paths.log}")


def _last_words(log: str) -> str:
    with open(log, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it left no word")
