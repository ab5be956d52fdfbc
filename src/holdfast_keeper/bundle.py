"""The directory of one place: the bundles of its processes, and the files that its keeper needs itself.

    keeper.lock           locked by anchor and keeper: one pair per directory
    keeper.sock           control stream
    depot.sock            descriptors for holders
    place.json            settings that outlive every process
    next/                 the files for the next start, made ahead of it
    live/<id>/            a bundle while its command runs, or a process can still write to its output
    done/<id>/            afterwards, until it is removed
        spec.json         how the command is run (0600: it contains the environment)
        pending-<start>   the state file before the command runs; only the child of this start can claim it
        state             the same file, renamed by that child just before exec
        state.<run>       the state of the run before this one
        in.fifo out.fifo err.fifo
        out.<offset>      log segments, named by the offset of their first byte
        err.<offset>      likewise, when the streams are kept apart
        out.times         when output arrived (TIME_ENTRY); missing as long as all of it came within 100 ms of the start
        err.times

`state` has a fixed size and four slots that are overwritten in place, so that an exit can be recorded on a full disk.
A slot is one line of JSON, or blank.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import resource
import socket
import stat
import struct
from typing import Any, NamedTuple

from holdfast_keeper import log

CONTROL = "keeper.sock"
FD_STORE = "depot.sock"
LOCK = "keeper.lock"
SETTINGS = "place.json"
LIVE = "live"
DONE = "done"
NEXT = "next"

SPEC = "spec.json"
_PENDING = "pending-"
STATE = "state"
STDIN = "in.fifo"
FIFO = {"out": "out.fifo", "err": "err.fifo"}

#: An entry of the index of a log: microseconds since 1970; the offset of the output that arrived then, which is never
#: less than that of the entry before; the new columns and rows of the terminal, or 0; 0.
TIME_ENTRY = struct.Struct("<QQHHI")

SLOT_SIZE = 1024
STATE_SIZE = 4 * SLOT_SIZE

#: The slots, in file order: the identity of the command; the request to stop it; its exit, after its output was
#: drained; the exit status that the anchor saw when it reaped the command in the keeper's absence.
BORN, STOP, EXIT, WITNESS = range(4)

Slot = dict[str, Any]


class BundleState(NamedTuple):
    """The four slots of a state file; None where nothing is known yet."""

    born: Slot | None
    stop: Slot | None
    exit: Slot | None
    witness: Slot | None


def pending(start: str) -> str:
    """The name of the state file that only the child of this start can claim."""
    return f"{_PENDING}{start}"


def void_pending(directory: str) -> None:
    """Make sure that a command which does not run yet never will."""
    for name in os.listdir(directory):
        if name.startswith(_PENDING):
            try:
                os.rename(f"{directory}/{name}", f"{directory}/void")
            except FileNotFoundError:
                continue  # it was claimed at this moment


def set_state_aside(directory: str, run: int) -> None:
    """Set the state of the last run aside, so that the next run can be claimed. Only the newest one is kept."""
    before = _past_runs(directory)
    os.rename(f"{directory}/{STATE}", f"{directory}/{STATE}.{run}")
    for other in before:
        if other != run:
            unlink(f"{directory}/{STATE}.{other}")


def restore_state(directory: str) -> bool:
    """Undo `set_state_aside` in a bundle whose next run never started. Returns whether there was a run before it."""
    unlink(f"{directory}/void")
    runs = _past_runs(directory)
    if runs:
        os.rename(f"{directory}/{STATE}.{runs[-1]}", f"{directory}/{STATE}")
    return bool(runs)


def _past_runs(directory: str) -> list[int]:
    prefix = f"{STATE}."
    names = (name.removeprefix(prefix) for name in os.listdir(directory) if name.startswith(prefix))
    return sorted(int(name) for name in names if name.isdigit())


_dumps = json.JSONEncoder(separators=(",", ":")).encode


def encode_slot(value: Slot) -> bytes:
    line = _dumps(value).encode()
    if len(line) >= SLOT_SIZE:
        raise ValueError(f"a slot holds {SLOT_SIZE - 1} bytes, this needs {len(line)}")
    return line + b"\n" + b" " * (SLOT_SIZE - len(line) - 1)


def decode_slot(raw: bytes) -> Slot | None:
    """The slot's value; None when it is blank or was never completely written."""
    line, newline, _ = raw.partition(b"\n")
    if not newline:
        return None
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def read_state(directory: str) -> BundleState | None:
    """The state of a bundle; None when its command never ran."""
    try:
        fd = open_file(f"{directory}/{STATE}")
    except FileNotFoundError:
        return None
    try:
        raw = os.read(fd, STATE_SIZE)
    finally:
        os.close(fd)
    return BundleState(*(decode_slot(raw[at : at + SLOT_SIZE]) for at in range(0, STATE_SIZE, SLOT_SIZE)))


def create(path: str, content: bytes) -> None:
    """A new file that only its owner can read."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def write_slot(directory: str, slot: int, value: Slot, name: str = STATE) -> None:
    """Overwrite one slot in place: one write within one page, so a kill leaves the old or the new line."""
    raw = encode_slot(value)
    fd = os.open(f"{directory}/{name}", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(fd, raw, slot * SLOT_SIZE)
    finally:
        os.close(fd)


class Segment(NamedTuple):
    start: int
    size: int
    path: str


def segments(directory: str, stream: str) -> list[Segment]:
    """The log segments of a stream, oldest first. What lies before the first was dropped."""
    prefix = stream + "."
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith(prefix) and name[len(prefix) :].isdigit():
                found.append(Segment(int(name[len(prefix) :]), entry.stat(follow_symlinks=False).st_size, entry.path))
    found.sort()
    return found


def segment_path(directory: str, stream: str, start: int) -> str:
    return f"{directory}/{stream}.{start:020d}"


def times_path(directory: str, stream: str) -> str:
    return f"{directory}/{stream}.times"


def unlink(path: str) -> None:
    """Remove a file that may be gone already."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def remove(directory: str) -> None:
    """Remove a bundle, which has no directories in it. One that is gone already is no error."""
    try:
        for name in os.listdir(directory):
            unlink(f"{directory}/{name}")
        os.rmdir(directory)
    except FileNotFoundError:
        return


def find(place: str, process_id: str) -> str | None:
    """The directory of a process's bundle now; None when there is none."""
    for state in (LIVE, DONE, LIVE):  # the keeper moves it from live to done, so look at live once more
        directory = f"{place}/{state}/{process_id}"
        if os.path.isdir(directory):
            return directory
    return None


def open_directory(place: str, process_id: str) -> int | None:
    """The directory of a process's bundle, for access by descriptor; None when there is none.

    Follows no symbolic links: what runs in a container can write to the directory of its place.
    """
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    for state in (LIVE, DONE, LIVE):
        try:
            parent = os.open(f"{place}/{state}", flags)
        except (FileNotFoundError, NotADirectoryError):
            continue
        try:
            return os.open(process_id, flags, dir_fd=parent)
        except (FileNotFoundError, NotADirectoryError):
            continue
        finally:
            os.close(parent)
    return None


def open_file(path: str) -> int:
    """A regular file of a bundle, for reading. Follows no symbolic link and waits for no FIFO. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, f"{os.path.basename(path)} is not a regular file")
    return fd


def finished_report(process_id: str, directory: str) -> dict[str, Any] | None:
    """The report of an archived bundle; None when there is no such bundle."""
    state = read_state(directory)
    if state is None or state.born is None:
        return None
    streams = {}
    for name in stream_names(state.born):
        found = segments(directory, name)
        first = found[0].start if found else 0
        end = found[-1].start + found[-1].size if found else 0
        streams[name] = {"first": first, "end": end, "closed": True}
    return {
        "id": process_id,
        "born": state.born,
        "stop": state.stop,
        "exit": state.exit,
        "streams": streams,
        "stdin": None,
        "trouble": None,
    }


def stream_names(born: Slot) -> tuple[str, ...]:
    return ("out", "err") if born["split"] else ("out",)


class DirectoryTaken(Exception):
    """Another anchor and keeper hold this directory."""


class KeeperDir:
    """The directory of a place, as its anchor and keeper have it: locked, with both sockets open."""

    def __init__(self, directory: str, inherited: dict[str, int] | None = None) -> None:
        """Lock the directory, unless its lock and sockets were `inherited` (see `renew.py`).

        Raises DirectoryTaken when it is locked already, OSError when it cannot be used.
        """
        self.path = os.path.abspath(directory)
        if inherited is None:
            for name in (LIVE, DONE):
                os.makedirs(f"{self.path}/{name}", mode=0o700, exist_ok=True)
            self._lock = _lock(f"{self.path}/{LOCK}")
            self._fd = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            self.control = _listen(self.path, CONTROL, socket.SOCK_STREAM)
            self.fd_store = _listen(self.path, FD_STORE, socket.SOCK_SEQPACKET)
        else:
            self._lock, self._fd = inherited["lock"], inherited["directory"]
            self.control = socket.socket(fileno=inherited["control"])
            self.fd_store = socket.socket(fileno=inherited["fd_store"])
            for listener in (self.control, self.fd_store):
                listener.setblocking(False)
        self.file_limit = _raise_file_limit()
        #: The release of this program, as its daemon named it.
        self.release_name: str | None = None

    def descriptors(self) -> dict[str, int]:
        """Its open descriptors by name, for `inherited`."""
        listeners = {"control": self.control.fileno(), "fd_store": self.fd_store.fileno()}
        return {"lock": self._lock, "directory": self._fd, **listeners}

    def live(self, process_id: str) -> str:
        return f"{self.path}/{LIVE}/{process_id}"

    def done(self, process_id: str) -> str:
        return f"{self.path}/{DONE}/{process_id}"

    def read_settings(self) -> dict[str, Any]:
        try:
            with open(f"{self.path}/{SETTINGS}", "rb") as file:
                return dict(json.load(file))
        except (FileNotFoundError, ValueError):
            return {}

    def write_settings(self, settings: dict[str, Any]) -> None:
        path = f"{self.path}/{SETTINGS}"
        try:
            if settings == self.read_settings():
                return
            with open(f"{path}.new", "w") as file:
                json.dump(settings, file)
            os.replace(f"{path}.new", path)
        except OSError as failed:  # they apply all the same, until the next keeper
            log.write(f"keeper: cannot write {SETTINGS}: {failed}")

    def exists(self) -> bool:
        """Whether the directory is still at its path. Another directory at that path does not count."""
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self.path))
        except OSError:
            return False

    def release(self) -> None:
        """Remove the sockets and unlock the directory."""
        for name in (CONTROL, FD_STORE) if self.exists() else ():
            unlink(f"{self.path}/{name}")
        os.close(self._fd)
        os.close(self._lock)


def _lock(path: str) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise DirectoryTaken from None
    return fd


def _listen(directory: str, name: str, kind: socket.SocketKind) -> socket.socket:
    unlink(f"{directory}/{name}")
    listener = socket.socket(socket.AF_UNIX, kind)
    # Through a descriptor: the path of a socket has at most 107 bytes.
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{fd}/{name}")
    finally:
        os.close(fd)
    os.chmod(f"{directory}/{name}", 0o600)
    listener.listen(128)
    listener.setblocking(False)
    return listener


def _raise_file_limit() -> tuple[int, int]:
    """Raise the limit on open files: each command takes three or more. Returns the old one, which commands get."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft, hard
