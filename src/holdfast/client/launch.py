"""What a client has before its first request: its state, what its commands inherit, and a connection to the daemon.

The daemon of the instance is found, or started where there is none. There is never more than one.
"""

from __future__ import annotations

import _socket
import os
import struct
import sys
import time

import holdfast.light_json as light_json  # `from holdfast import …` would look the name up in the package first
from holdfast.errors import BadValue, Denied, DiskFull, HoldfastError, Unreachable, from_wire
from holdfast.paths import find_paths, make_directories
from holdfast.wire.frames import peer_credentials

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.client.http.exchange import HttpAddress
    from holdfast.paths import Paths

DEFAULT_SESSION = "default"

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


class ClientState:
    """The state of a client, blocking or not."""

    def __init__(
        self,
        session: str | None = None,
        *,
        home: str | os.PathLike[str] | None = None,
        url: str | None = None,
        token: str | None = None,
        strict: bool = False,
    ) -> None:
        self.session = session_of(session)
        self.is_strict = strict
        self.paths = find_paths({"HOLDFAST_HOME": os.fspath(home)} if home is not None else None)
        #: How far the input of a process reached when this client last wrote to it.
        self.accepted: dict[str, int] = {}
        self._address = address_of(url, token, home is not None, self.paths)
        #: How long a connection over HTTP may take: not at all, until the daemon is known to be there.
        self._connect_timeout = 0.0
        self._is_open = True
        #: Ids of notifications that replies to this client contained.
        self._delivered: list[str] = []


def new_id() -> str:
    """A new id. The client chooses it, so that a repeated request starts one process."""
    return f"proc_{os.urandom(6).hex()}"


def address_of(url: str | None, token: str | None, is_home_named: bool, paths: Paths) -> HttpAddress | None:
    """The HTTP address of the daemon; None for the socket of the instance. Raises BadValue."""
    if url is None:
        url = None if is_home_named else os.environ.get("HOLDFAST_URL") or None
    if url is None:
        return None
    from holdfast.client.http.exchange import find_address

    return find_address(url, token, paths)


def in_own_words(op: str, error: BadValue) -> BadValue:
    """The error of an operation, with the name that a field has as a parameter of the method."""
    from holdfast.ops.catalog import OPERATIONS

    field, space, rest = error.message.partition(" ")
    names = OPERATIONS[op].traits.names if op in OPERATIONS else {}
    if space and field in names:
        return BadValue(f"{names[field]} {rest}", next=error.next, data=error.data)
    return error


def session_of(named: str | None) -> str:
    if named is None:
        return os.environ.get("HOLDFAST_SESSION") or DEFAULT_SESSION
    if not named:
        raise BadValue("a session has 1 to 256 printable characters", next="name one, or leave it out")
    return named


def directory() -> tuple[str, tuple[str, ...]]:
    """The current directory; a fallback and a note about it when that was deleted."""
    try:
        return os.getcwd(), ()
    except FileNotFoundError:
        home = os.path.expanduser("~")
        fallback = home if os.path.isdir(home) else "/"
        return fallback, (f"the current directory is gone; running in {fallback}",)


def variables() -> dict[str, str]:
    """The variables of this program. As `dict(os.environ)`, which decodes each one by itself, twice."""
    raw = getattr(os.environ, "_data", None)
    if not raw:
        return dict(os.environ)
    words = os.fsdecode(b"\0".join([*raw.keys(), *raw.values()])).split("\0")
    return dict(zip(words[: len(raw)], words[len(raw) :], strict=True))


def umask() -> int:
    """The umask, read without setting it: other threads may be making files."""
    try:
        status = os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)
        try:
            beginning = os.read(status, 256)
        finally:
            os.close(status)
        return int(beginning.partition(b"\nUmask:")[2].split(None, 1)[0], 8)
    except (OSError, IndexError):
        return 0o022


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
    from holdfast.secrets.environment import for_backends, minimal

    env = {**minimal(os.environ), **for_backends(os.environ)}
    if paths.runtime == paths.home:
        env["HOLDFAST_HOME"] = paths.home  # absolute: the daemon works in another directory
    if _is_id(outer := os.environ.get("HOLDFAST_ID", "")):
        env["HOLDFAST_OUTER_ID"] = outer  # a held command of another instance: to this one, its programs are free
    return env


def _is_id(text: str) -> bool:
    """As `holdfast.model.process.is_id`, without its imports."""
    return len(text) == 17 and text.startswith("proc_") and not text[5:].strip("0123456789abcdef")


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
