"""What the relay sends to the daemon: messages, and the bundles of a place as they grow.

A thread writes it, so that the loop does not wait for a slow connection. Messages without a bundle go first. Each
bundle has a lane, in which messages that concern it wait until its bytes up to then are sent; the lanes take turns, one
piece each. Bundles are sent as

    {"state": "live" or "done", "id"}        where the bundle lies
    {"put": name, "id", "mtime"} + raw       a whole file
    {"file": name, "id", "at", "size", "mtime"}, then `size` bytes that belong at offset `at`; the daemon
                                             sends an "ack" in it back when it has written them
    {"drop": [name], "id"}                   files that are gone
    {"gone": id}                             the bundle is removed
"""

from __future__ import annotations

import itertools
import math
import os
import re
import select
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from holdfast.light_json import dump_bytes
from holdfast_keeper import bundle, protocol
from holdfast_keeper.protocol import Message

#: The parts of files that are sent without looking for urgent messages: as large as takes a few milliseconds.
LARGEST_PIECE = 1 << 20
_SMALLEST_PIECE = 64 << 10
_PIECE_TIME = 0.02
#: Bytes of files that may be on their way at first, and at least.
_FIRST_WINDOW = 256 << 10
_SMALLEST_WINDOW = 64 << 10
#: How much longer they may be on their way than 1.5 times what the fastest took.
_MOST_DELAY = 0.1
#: A bundle of which no more was written meanwhile does not wait until there is room for those with much output.
_LITTLE = 16 << 10
#: As large as the pipe to the connection is made, where it is one. When it is full, it is filled again after a pause in
#: which it is half emptied: a connection that always finds much to send takes a third less time for it.
_PIPE_SIZE = 1 << 20
_FULL_PAUSE = 0.001
_SET_PIPE_SIZE = 1031

_SEGMENT = re.compile(r"(out|err)\.(\d{1,20})\Z")
_TIMES = re.compile(r"(out|err)\.times\Z")
#: Offsets up to which the streams of a bundle are sent.
Ends = dict[str, int]


def is_mirrored(name: str) -> bool:
    """Whether a file of a bundle is copied: spec and state, and its logs with their index."""
    return name in (bundle.SPEC, bundle.STATE) or _SEGMENT.match(name) is not None or _TIMES.match(name) is not None


class _Sync:
    """Everything that is in the bundle now is sent before what stands behind this in the lane."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[Ends], None]] = []
        self.work: Iterator[None] | None = None
        #: How many bytes of files were sent so far.
        self.size = 0


class _File(NamedTuple):
    name: str
    size: int
    mtime: int
    inode: int


class _Window:
    """Limits the bytes of files that are on their way: a message waits behind all of them, on a slow connection long.

    The limit follows the time in which they are acknowledged, so that a fast connection is not held up.
    """

    def __init__(self) -> None:
        self._size = _FIRST_WINDOW
        self.sent = 0
        self._acknowledged = 0
        #: Of each acknowledgement that is expected: up to which byte, when it was sent, and what was on its way then.
        self._asked: deque[tuple[int, float, int]] = deque()
        self._shortest = math.inf
        self._is_limiting = False

    def is_full(self) -> bool:
        full = bool(self._asked) and self.sent - self._acknowledged >= self._size
        self._is_limiting |= full
        return full

    @property
    def largest_piece(self) -> int:
        return max(_SMALLEST_WINDOW, self._size) >> 2

    def send(self, count: int) -> Message:
        """What to add to the message that announces so many bytes."""
        self.sent += count
        if self.sent - (self._asked[-1][0] if self._asked else self._acknowledged) < self._size >> 2:
            return {}
        self._asked.append((self.sent, time.monotonic(), self.sent - self._acknowledged))
        return {"ack": self.sent}

    def acknowledge(self, up_to: int) -> None:
        while self._asked and self._asked[0][0] <= up_to:
            end, at, under_way = self._asked.popleft()
            took = time.monotonic() - at
            self._shortest = min(self._shortest, took)
            limit = 1.5 * self._shortest + _MOST_DELAY
            if took > limit:
                self._size = max(_SMALLEST_WINDOW, int(under_way * limit / took))
            elif self._is_limiting:
                self._size += end - self._acknowledged
            self._is_limiting, self._acknowledged = False, end


class RelayOutput:
    """Writes to the descriptor `target`. `directory` is that of the place."""

    def __init__(self, target: int, directory: str) -> None:
        self._target = target
        self._is_pipe = _enlarge(target)
        self._directory = directory
        self._urgent: deque[bytes] = deque()
        self._lanes: dict[str, deque[_Sync | bytes]] = {}
        self._turns: deque[str] = deque()
        self._changed = threading.Condition()
        self._sources: dict[str, BundleSource] = {}
        self._window = _Window()
        #: Bundles with much output, which wait until there is room.
        self._large: set[str] = set()
        self.piece = _SMALLEST_PIECE
        #: Bundles that the daemon had completely when it connected.
        self.complete: frozenset[str] = frozenset()
        threading.Thread(target=self._run, name="output", daemon=True).start()

    def send(self, message: Message, raw: Sequence[bytes] = ()) -> None:
        """Before anything of a bundle that is not sent yet."""
        frame = protocol.encode(message, raw, dump_bytes)
        with self._changed:
            self._urgent.append(frame)
            self._changed.notify()

    def send_after(self, process_id: str, message: Message, raw: Sequence[bytes] = ()) -> None:
        """Behind all bytes that are in the bundle now."""
        frame = protocol.encode(message, raw, dump_bytes)
        with self._changed:
            self._sync_in(process_id)
            self._lanes[process_id].append(frame)
            self._changed.notify()

    def sync(self, process_id: str, done: Callable[[Ends], None] | None = None) -> None:
        """Send what the bundle has now. `done` is called in the thread, when that is written."""
        with self._changed:
            sync = self._sync_in(process_id)
            if done is not None:
                sync.callbacks.append(done)
            self._changed.notify()

    def forget(self, process_id: str) -> None:
        """The bundle is removed."""
        with self._changed:
            self._lanes.setdefault(process_id, deque()).append(protocol.encode({"gone": process_id}))
            self._sources.pop(process_id, None)
            self._large.discard(process_id)
            self._take_turn(process_id)
            self._changed.notify()

    def acknowledge(self, up_to: int) -> None:
        """The daemon has everything up to the piece that was announced with this number."""
        with self._changed:
            self._window.acknowledge(up_to)
            self._changed.notify()

    def know(self, process_id: str, sizes: dict[str, int]) -> None:
        """What the daemon has of a bundle that runs. Called before the bundle is sent for the first time."""
        self._sources[process_id] = BundleSource(process_id, bundle.LIVE, sizes)

    def send_spec(self, process_id: str) -> None:
        """Send the spec of a bundle that is not complete there, unless the daemon has it."""
        source = self._sources.setdefault(process_id, BundleSource(process_id))
        if bundle.SPEC in source.sizes:
            return
        try:
            with open(f"{bundle.find(self._directory, process_id)}/{bundle.SPEC}", "rb") as file:
                content, mtime = file.read(), os.fstat(file.fileno()).st_mtime_ns
        except FileNotFoundError:
            return
        self.send({"state": bundle.LIVE, "id": process_id})
        self.send({"put": bundle.SPEC, "id": process_id, "mtime": mtime}, [content])
        source.sizes[bundle.SPEC] = len(content)

    def _sync_in(self, process_id: str) -> _Sync:
        lane = self._lanes.setdefault(process_id, deque())
        last = lane[-1] if lane else None
        if not isinstance(last, _Sync) or last.work is not None:
            last = _Sync()
            lane.append(last)
        self._take_turn(process_id)
        return last

    def _take_turn(self, process_id: str) -> None:
        if process_id not in self._turns:
            self._turns.append(process_id)

    # In the thread.

    def _run(self) -> None:
        try:
            while True:
                urgent, process_id = self._next()
                if urgent:
                    self.write(urgent)
                elif process_id is not None:
                    self._step(process_id)
        except OSError:
            # The connection is cut: stdin ends, too. Where a file cannot be read, the daemon connects again.
            os._exit(1)

    def _next(self) -> tuple[bytes, str | None]:
        with self._changed:
            turn = None
            while not self._urgent and (turn := self._next_turn()) is None:
                self._changed.wait()
            urgent = b"".join(self._urgent)
            self._urgent.clear()
            return urgent, turn

    def _next_turn(self) -> str | None:
        if self._turns and self._window.is_full():
            return next((process_id for process_id in self._turns if process_id not in self._large), None)
        return self._turns[0] if self._turns else None

    def _step(self, process_id: str) -> None:
        """One piece of a lane, which is the last one then."""
        with self._changed:
            item = self._lanes[process_id][0]
            source = self._sources.get(process_id)
            if source is None:
                state = bundle.DONE if process_id in self.complete else None
                source = self._sources[process_id] = BundleSource(process_id, state)
            if isinstance(item, _Sync) and item.work is None:
                item.work = source.send(self._directory, self)  # from now on, others get a sync of their own
        if isinstance(item, bytes):
            self.write(item)
            is_done = True
        else:
            is_done = self._send_part(process_id, item, source)
        with self._changed:
            lane = self._lanes[process_id]
            if is_done:
                lane.popleft()
            self._turns.remove(process_id)
            if lane:
                self._turns.append(process_id)
            else:
                del self._lanes[process_id]

    def _send_part(self, process_id: str, sync: _Sync, source: BundleSource) -> bool:
        """Whether it was the last one."""
        assert sync.work is not None
        before = self._window.sent
        is_done = next(sync.work, StopIteration) is StopIteration
        sync.size += self._window.sent - before
        with self._changed:
            if sync.size > _LITTLE:
                self._large.add(process_id)
            elif is_done:
                self._large.discard(process_id)
        for done in sync.callbacks if is_done else ():
            done(dict(source.ends))
        return is_done

    def message(self, message: Message, raw: Sequence[bytes] = ()) -> None:
        self.write(protocol.encode(message, raw, dump_bytes))

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._target, view) :]
            except BlockingIOError:
                select.select([], [self._target], [])

    def send_piece(self, announcement: Message, file: int, at: int, most: int) -> int:
        """The next bytes of a file, and how many these are."""
        with self._changed:
            count = min(self.piece, most, self._window.largest_piece)
            asked = self._window.send(count)
        self.message({**announcement, "at": at, "size": count, **asked})
        self._copy(file, at, count)
        return count

    def _copy(self, file: int, at: int, count: int) -> None:
        end, began = at + count, time.monotonic()
        while at < end:
            try:
                sent = os.sendfile(self._target, file, at, end - at)
            except BlockingIOError:
                if self._is_pipe:
                    time.sleep(_FULL_PAUSE)
                select.select([], [self._target], [])
                continue
            if not sent:
                raise OSError("a log has become shorter")
            at += sent
        if count == self.piece:
            is_fast = time.monotonic() - began < _PIECE_TIME
            self.piece = min(LARGEST_PIECE, count * 2) if is_fast else max(_SMALLEST_PIECE, count // 2)


def _enlarge(target: int) -> bool:
    """Whether it is a pipe that was enlarged. Then it is not blocking, either."""
    import fcntl

    try:
        fcntl.fcntl(target, _SET_PIPE_SIZE, _PIPE_SIZE)
    except OSError:  # no pipe, or the user has too many large ones
        return False
    os.set_blocking(target, False)
    return True


class BundleSource:
    """How much of one bundle the daemon has."""

    def __init__(self, process_id: str, state: str | None = None, sizes: dict[str, int] | None = None) -> None:
        self._id = process_id
        self._state = state
        self.sizes = dict(sizes or {})
        self.ends: Ends = {}
        #: The state file and its time, as they were sent.
        self._recorded: tuple[bytes, int] | None = None
        #: The inodes of the indexes that were sent: one that was rewritten is another file.
        self._inodes: dict[str, int] = {}
        #: Segments that have a successor and were sent: they do not grow any more.
        self._final: set[str] = set()

    def send(self, place: str, output: RelayOutput) -> Iterator[None]:
        """Send what has changed, up to what is there now; each step is one piece. Raises OSError."""
        found = _open_bundle(place, self._id)
        if found is None:
            return
        state, directory = found
        try:
            if state == self._state == bundle.DONE:
                return
            if state == bundle.LIVE != self._state:
                output.message({"state": state, "id": self._id})
                self._state = state
            recorded = _read_state(directory)  # before the sizes: an end is recorded when its output is in the log
            names = _names(directory)
            final = set(_with_successor(names))  # before their sizes
            known = self._final & final
            for file in _look(directory, [name for name in names if name not in known]):
                if file.size != self.sizes.get(file.name) or _SEGMENT.match(file.name) is None:
                    yield from self._send_file(directory, file, output)
            self._final = final & self.sizes.keys()
            if recorded is not None and recorded != self._recorded:
                content, mtime = self._recorded = recorded
                output.message({"put": bundle.STATE, "id": self._id, "mtime": mtime}, [content])
            dropped = self.sizes.keys() - set(names) - {bundle.STATE}
            if dropped:
                output.message({"drop": sorted(dropped), "id": self._id})
                for name in dropped:
                    del self.sizes[name]
            if state == bundle.DONE:
                output.message({"state": state, "id": self._id})
                self._state = state
        finally:
            os.close(directory)

    def _send_file(self, directory: int, file: _File, output: RelayOutput) -> Iterator[None]:
        try:
            fd = os.open(file.name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=directory)
        except FileNotFoundError:  # dropped meanwhile
            return
        try:
            if _SEGMENT.match(file.name) is not None:
                yield from self._send_growth(fd, file, output)
            elif file.name == bundle.SPEC:
                if file.name not in self.sizes:
                    self._put(fd, file, output)
            else:
                yield from self._send_times(fd, file, output)
        finally:
            os.close(fd)

    def _send_growth(self, fd: int, file: _File, output: RelayOutput) -> Iterator[None]:
        name, at = file.name, self.sizes.get(file.name, 0)
        while at < file.size or name not in self.sizes:
            at += output.send_piece({"file": name, "id": self._id, "mtime": file.mtime}, fd, at, file.size - at)
            self.sizes[name] = at
            yield
        if (segment := _SEGMENT.match(name)) is not None:
            self.ends[segment[1]] = max(self.ends.get(segment[1], 0), int(segment[2]) + at)

    def _send_times(self, fd: int, file: _File, output: RelayOutput) -> Iterator[None]:
        if self._inodes.get(file.name) == os.fstat(fd).st_ino and self.sizes[file.name] <= file.size:
            yield from self._send_growth(fd, file, output)
        else:
            self._put(fd, file, output)
            self._inodes[file.name] = os.fstat(fd).st_ino

    def _put(self, fd: int, file: _File, output: RelayOutput) -> None:
        content = b""
        while part := os.read(fd, protocol.MAX_FRAME >> 1):
            content += part
        output.message({"put": file.name, "id": self._id, "mtime": file.mtime}, [content])
        self.sizes[file.name] = len(content)


def _open_bundle(place: str, process_id: str) -> tuple[str, int] | None:
    """The state and the directory of a bundle; None where there is none."""
    for state in (bundle.LIVE, bundle.DONE, bundle.LIVE):
        try:
            return state, os.open(f"{place}/{state}/{process_id}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
    return None


def _read_state(directory: int) -> tuple[bytes, int] | None:
    """The content of the state file, and its time; None where there is none yet."""
    try:
        fd = os.open(bundle.STATE, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=directory)
    except FileNotFoundError:
        return None
    try:
        return os.pread(fd, bundle.STATE_SIZE, 0), os.fstat(fd).st_mtime_ns
    finally:
        os.close(fd)


def _names(directory: int) -> list[str]:
    """The files that are copied: the spec, indexes, and segments in the order of their offsets. Not the state."""
    names = [name for name in os.listdir(directory) if is_mirrored(name) and name != bundle.STATE]
    return sorted(names, key=lambda name: (_SEGMENT.match(name) is not None, name))


def _look(directory: int, names: list[str]) -> list[_File]:
    files = []
    for name in names:
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if stat.S_ISREG(found.st_mode):
            files.append(_File(name, found.st_size, found.st_mtime_ns, found.st_ino))
    return files


def _with_successor(names: list[str]) -> Iterator[str]:
    """Only the newest segment of a stream is written to."""
    for name, following in itertools.pairwise(names):
        if (one := _SEGMENT.match(name)) and (other := _SEGMENT.match(following)) and one[1] == other[1]:
            yield name
