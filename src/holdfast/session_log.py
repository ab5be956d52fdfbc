"""The session log: the conversation of one session on disk, an append-only tree of entries, one line of JSON each.

An entry is on disk when `append` returns: what is done next may rely on it. A process that is killed while it writes
leaves an incomplete last line, which readers ignore and the next writer removes. There is one writer: it has the lock.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from types import NoneType
from typing import Any, Literal, NamedTuple, Self, TypeAlias, get_args

from holdfast.errors import BadValue, DiskFull, HoldfastError, NotFound, NotNow
from holdfast.model.agents import is_session

#: Of the format. A reader refuses a log with a greater one.
VERSION = 1
_SUFFIX = ".jsonl"
_LONGEST_NAME = 120
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")

Kind: TypeAlias = Literal[
    "session",  # the first line: version, session
    "settings",  # model, endpoint, system prompt and tools from here on
    "user",  # a message of the user: text; `input` identifies it
    "notice",  # a notification of the session: text; the system's, not the user's
    "assistant",  # what the model answered: text, reasoning, calls, usage
    "tool_start",  # a call is about to run: call, name; `process` is the id that its process will have
    "tool_result",  # the answer to a call: call, name, text, is_error
    "interrupt",  # the user interrupted
    "error",  # the model could not be asked, or a turn was given up: message
    "compaction",  # summary in place of everything before; `first_kept` is the entry that the rest begins with
    "end",  # of a turn: reason
]
KINDS = frozenset(get_args(Kind))


class LogEntry(NamedTuple):
    """One line. `id` counts from 1; `parent` is the entry that it follows, None for the first."""

    id: int
    parent: int | None
    time: float
    kind: str
    content: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return self._asdict()


#: Of the fields of an entry.
_TYPES: tuple[Any, ...] = (int, (int, NoneType), (int, float), str, dict)


def directory(home: str) -> str:
    return os.path.join(home, "agent", "sessions")


def path_of(home: str, session: str) -> str:
    """The log of a session. Each name of a session has a file name of its own."""
    if not is_session(session):
        raise BadValue("a session has 1 to 256 printable characters as its name", next="choose another --session")
    name = "".join(c if c in _PLAIN else "".join(f"%{byte:02X}" for byte in c.encode()) for c in session)
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}~{hashlib.sha256(session.encode()).hexdigest()[:16]}"
    return os.path.join(directory(home), f"{name}{_SUFFIX}")


def read(path: str) -> list[LogEntry]:
    """The entries of a log that may be written meanwhile. Raises NotFound, BadValue for a newer format."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        raise NotFound("this session has no conversation with an agent", next="holdfast agent log lists them") from None
    except OSError as failed:
        raise HoldfastError(f"cannot read {path}: {failed.strerror}", next="check its permissions") from failed
    return list(_parsed(data))


def _parsed(data: bytes) -> Iterator[LogEntry]:
    """The entries of complete lines. A damaged line (of a disk that lost power) is left out."""
    known: set[int] = set()
    last: int | None = None
    for line in data.split(b"\n")[:-1]:
        entry = parse_line(line)
        if entry is None or entry.id in known:
            continue
        if entry.parent is not None and entry.parent not in known:
            entry = entry._replace(parent=last)
        if entry.kind == "session" and int(entry.content.get("version") or 0) > VERSION:
            raise BadValue("this log was written by a newer release", next="update holdfast")
        known.add(entry.id)
        last = entry.id
        yield entry


def parse_line(line: bytes) -> LogEntry | None:
    """The entry of a line; None for a damaged one."""
    try:
        fields = json.loads(line)
        entry = LogEntry(**{name: fields[name] for name in LogEntry._fields})
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return entry if all(isinstance(value, kind) for value, kind in zip(entry, _TYPES, strict=True)) else None


def branch(entries: Iterable[LogEntry], head: int | None = None) -> list[LogEntry]:
    """The entries from the first one to `head` (by default the newest), without those of other branches."""
    by_id = {entry.id: entry for entry in entries}
    at = head if head is not None else next(reversed(by_id), None)
    found: list[LogEntry] = []
    while at is not None and (entry := by_id.pop(at, None)) is not None:
        found.append(entry)
        at = entry.parent
    return found[::-1]


class LogTail:
    """Reads what was appended to a session log since the last time."""

    def __init__(self, path: str, offset: int = 0) -> None:
        self._path = path
        self._offset = offset
        self._last = 0

    @property
    def has_more(self) -> bool:
        return size_of(self._path) > self._offset

    def read(self) -> list[LogEntry]:
        """The new entries, each once. An incomplete line is read again."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return []
        end = data.rfind(b"\n") + 1
        self._offset += end
        found = []
        for line in data[:end].split(b"\n"):
            entry = parse_line(line) if line else None
            if entry is not None and entry.id > self._last:
                self._last = entry.id
                found.append(entry)
        return found


def size_of(path: str) -> int:
    """The bytes of a log; 0 where there is none."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


class LoggedSession(NamedTuple):
    """A session that has a log."""

    session: str
    path: str
    changed_at: float


def sessions(home: str) -> list[LoggedSession]:
    """Those that have a log, the one that was written last first."""
    found = []
    try:
        names = os.listdir(directory(home))
    except OSError:
        return []
    for name in names:
        path = os.path.join(directory(home), name)
        if not name.endswith(_SUFFIX):
            continue
        try:
            with open(path, "rb") as file:
                first = parse_line(file.readline(1 << 16).rstrip(b"\n"))
                changed_at = os.fstat(file.fileno()).st_mtime
        except OSError:
            continue
        session = first.content.get("session") if first is not None else None
        if isinstance(session, str):
            found.append(LoggedSession(session, path, changed_at))
    return sorted(found, key=lambda one: one.changed_at, reverse=True)


def is_held(home: str, session: str) -> bool:
    """Whether an agent has the lock of this session."""
    try:
        fd = os.open(f"{path_of(home, session)}.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(fd)


class SessionLog:
    """The log of a session for its writer. `head` is the entry that the next one follows."""

    def __init__(self, home: str, session: str, clock: Callable[[], float] = time.time) -> None:
        """Raises NotNow where another process has it, HoldfastError where it cannot be written."""
        self.path = path_of(home, session)
        self.session = session
        self._clock = clock
        self._fd = self._lock = -1
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            self._lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self._size = self._drop_torn_line()
        except BlockingIOError:
            self.close()
            raise NotNow("another agent has this session", next="holdfast agent, with its session") from None
        except OSError as failed:
            self.close()
            raise _failed(self.path, failed) from failed
        self.entries = read(self.path)
        self._next = max((entry.id for entry in self.entries), default=0) + 1
        self.head = self.entries[-1].id if self.entries else None
        if not self.entries:
            self.append("session", version=VERSION, session=session)
            self._sync_directory()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, kind: Kind, **content: Any) -> LogEntry:
        """Write an entry behind `head`. It is on disk when this returns. Raises HoldfastError: nothing was written."""
        entry = LogEntry(self._next, self.head, round(self._clock(), 3), kind, content)
        line = json.dumps(entry.to_json(), ensure_ascii=False, separators=(",", ":"), default=str)
        data = line.encode(errors="backslashreplace") + b"\n"
        try:
            written = 0
            while written < len(data):
                written += os.write(self._fd, data[written:])
            os.fdatasync(self._fd)
        except OSError as failed:
            os.ftruncate(self._fd, self._size)
            raise _failed(self.path, failed) from failed
        self._size += len(data)
        self._next += 1
        self.head = entry.id
        self.entries.append(entry)
        return entry

    @property
    def next_id(self) -> int:
        """The id of the next entry."""
        return self._next

    def branch(self) -> list[LogEntry]:
        """The conversation up to `head`."""
        return branch(self.entries, self.head)

    def close(self) -> None:
        """Gives the lock back."""
        for fd in (self._fd, self._lock):
            if fd >= 0:
                os.close(fd)
        self._fd = self._lock = -1

    def _drop_torn_line(self) -> int:
        """Remove what is behind the last complete line; the size that is left."""
        size = os.fstat(self._fd).st_size
        end = size
        while end > 0:
            start = max(0, end - (1 << 16))
            at = os.pread(self._fd, end - start, start).rfind(b"\n")
            if at >= 0:
                end = start + at + 1
                break
            end = start
        if end < size:
            os.ftruncate(self._fd, end)
            os.fdatasync(self._fd)
        return end

    def _sync_directory(self) -> None:
        fd = os.open(os.path.dirname(self.path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _failed(path: str, failed: OSError) -> HoldfastError:
    import errno

    if failed.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"the disk is full: {path}", next="free some space; the agent goes on by itself")
    return HoldfastError(f"cannot write {path}: {failed.strerror}", next="check its directory")
