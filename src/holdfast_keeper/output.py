"""The output of a command: moved with splice(2) from its pipe or terminal into its log, which has a cap.

A kill at any moment leaves each byte in exactly one place: in the pipe or in the file, never in this process. The log
of a stream is a row of files, the segments, named by the offset of their first byte. Offsets never change. Beside it is
an index that says when output arrived. `Quota` limits all logs of a place together.
"""

from __future__ import annotations

import errno
import os
import time
from collections import OrderedDict, deque

from holdfast_keeper import bundle, failpoints, kernel

#: What one call moves before other streams get a turn: what the enlarged pipe of a flood holds.
_BUDGET = 1 << 20
_CHUNK = 1 << 20
_FULL_PIPE = 64 << 10
#: A stream is a flood after this many moves in a row that come this close together or find the pipe half full.
_CLOSE = 0.002
_FLOOD = 16
#: How long a flood may fill its pipe before the next move: a few large moves cost a fraction of many small ones.
_GATHER = 0.001
#: More than a terminal buffers: this much, read after the exit, includes all that was written before it.
_TERMINAL_BUFFER = 128 << 10
_LARGEST_SEGMENT = 8 << 20
_SMALLEST_SEGMENT = 8 << 10
#: Seconds between two entries of the index of a log.
_TIME_STEP = 0.1
#: The most bytes of an index, and which part of the cap it may use.
_LARGEST_INDEX = 512 << 10
_INDEX_SHARE = 16
#: Seconds between two attempts to shorten an index.
_SHORTEN_PAUSE = 1.0
#: Logs are dropped until the quota leaves this much to append.
_AT_LEAST = 64 << 10

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def is_disk_full(error: OSError) -> bool:
    """Whether the disk takes nothing at present: it is full, over quota or read-only."""
    return error.errno in _DISK_FULL


class PipePump:
    """From the FIFO that a command writes to, into its log."""

    def __init__(self, source: int, log: Segments) -> None:
        self.source = source
        self.log = log
        self.closed = False
        self._capacity = _FULL_PIPE
        self._last_move = 0.0
        self._in_a_row = 0
        self._moved = 0

    def pause(self, now: float) -> float:
        """After a move: how long to let the pipe fill before the next one. 0 unless it is a flood."""
        is_more = now - self._last_move < _CLOSE or self._moved >= self._capacity // 2
        self._in_a_row = self._in_a_row + 1 if is_more else 0
        self._last_move = now
        if self._in_a_row == _FLOOD:
            # Only on demand: an unprivileged user gets 64 large pipes in all.
            self._capacity = kernel.grow_pipe(self.source, _CHUNK)
        has_room = self._capacity >= _CHUNK and self._moved < self._capacity // 2
        return _GATHER if self._in_a_row >= _FLOOD and has_room else 0.0

    def move(self, budget: int = _BUDGET) -> None:
        """Move what is there, up to the budget. Raises OSError when the disk is full; nothing is lost then."""
        self._moved = 0
        if self.closed or (self.log.is_untouched and not self._has_input()):
            return  # no file for a command that writes nothing
        if budget > 0 and self.log.times.is_due() and kernel.waiting_bytes(self.source):
            self.log.note_arrival()
        while budget > 0 and not self.closed:
            target, room = self.log.open_for_append()
            try:
                count = os.splice(self.source, target, min(room, budget, _CHUNK))
            except BlockingIOError:
                return
            self.log.appended(count)
            self.closed = count == 0
            self._moved += count
            budget -= count

    def hung_up(self) -> bool:
        """No process can write to it any more: it is closed unless something is left. Whether it is closed."""
        self.closed = kernel.waiting_bytes(self.source) == 0
        return self.closed

    def drain(self) -> int:
        """Move what was written up to now and no more, however busy other writers are. Returns where that ends."""
        if self.closed or not self._has_input():
            return self.log.end
        try:
            self.move(kernel.waiting_bytes(self.source))
        except OSError as error:
            if not is_disk_full(error):
                raise
            return self.log.end + kernel.waiting_bytes(self.source)
        self._has_input()
        return self.log.end

    def _has_input(self) -> bool:
        """Whether there is something to move. Notices the end, too."""
        has_input, is_over = kernel.pipe_state(self.source)
        self.closed |= is_over and not has_input
        return has_input


class TerminalPump:
    """From the master of a PTY into its log, through a pipe because splice needs one."""

    def __init__(self, source: int, pipe: tuple[int, int], log: Segments) -> None:
        self.source = source
        self._pipe_out, self._pipe_in = pipe
        self.log = log
        self.closed = False

    def move(self, budget: int = _BUDGET) -> None:
        """As PipePump.move. What the last keeper left in the pipe goes first."""
        self._empty_pipe()
        while budget > 0 and not self.closed:
            try:
                # Linux checks for data first and for the hangup afterwards. What was written and closed in between is
                # still there, so only a hangup that is seen twice is the end.
                count = self._take() or self._take()
            except BlockingIOError:
                return
            self.closed = count == 0
            self._empty_pipe()
            budget -= count

    def pause(self, now: float) -> float:
        """0: a terminal buffers too little."""
        return 0.0

    def hung_up(self) -> bool:
        """False: only reading it tells whether something is left."""
        return False

    def drain(self) -> int:
        """As PipePump.drain."""
        try:
            self.move(_TERMINAL_BUFFER)
        except OSError as error:
            if not is_disk_full(error):
                raise
        return self.log.end + kernel.waiting_bytes(self._pipe_out)

    def _take(self) -> int:
        """Terminal to pipe. Returns 0 at the end."""
        try:
            return os.splice(self.source, self._pipe_in, _FULL_PIPE)
        except OSError as error:
            if error.errno != errno.EIO:  # EIO: no process has the terminal open any more
                raise
            return 0

    def _empty_pipe(self) -> None:
        while kernel.waiting_bytes(self._pipe_out):
            if self.log.times.is_due():
                self.log.note_arrival()
            target, room = self.log.open_for_append()
            self.log.appended(os.splice(self._pipe_out, target, room))


class LostPump:
    """A terminal whose master is lost: its log can be read, and no more is added to it.

    It is closed when no holder can offer the master any more.
    """

    def __init__(self, log: Segments) -> None:
        self.log = log
        self.source = -1
        self.closed = False

    def move(self, budget: int = 0) -> None:
        return

    def pause(self, now: float) -> float:
        return 0.0

    def hung_up(self) -> bool:
        return self.closed

    def drain(self) -> int:
        return self.log.end


Pump = PipePump | TerminalPump | LostPump


class Segments:
    """Appends to the newest file and drops the oldest, so that at most `cap` bytes are kept, with the index of times.

    A file is dropped only when it has a successor: a new keeper learns the offset from the name of the newest file.
    """

    def __init__(self, directory: str, stream: str, cap: int, quota: Quota, is_new: bool = False) -> None:
        self.directory = directory
        self.stream = stream
        self.cap = cap
        self._quota = quota
        self._is_new = is_new
        self._size = max(_SMALLEST_SEGMENT, min(_LARGEST_SEGMENT, cap // 8))
        found = [] if is_new else bundle.segments(directory, stream)
        self._starts = deque(segment.start for segment in found)
        self.first = found[0].start if found else 0
        self.end = found[-1].start + found[-1].size if found else 0
        self._fd: int | None = None
        limit = min(_LARGEST_INDEX, cap // _INDEX_SHARE)
        self.times = ArrivalTimes(bundle.times_path(directory, stream), limit, None if is_new else self.end)
        quota.add(self)

    @property
    def held(self) -> int:
        """Bytes on the disk."""
        return self.end - self.first + self.times.size

    def note_arrival(self) -> None:
        """There is output at the end of the log, and an entry of the index is due."""
        if self.cap - self.held >= bundle.TIME_ENTRY.size:
            self._quota.used += self.times.note(self.first, self.end)
            failpoints.reach("time-noted")

    def note_resize(self, cols: int, rows: int) -> None:
        """Its terminal has this size from now on."""
        if self.cap - self.held >= bundle.TIME_ENTRY.size:
            self._quota.used += self.times.note_resize(self.first, self.end, cols, rows)

    @property
    def is_untouched(self) -> bool:
        """Whether it is the log of a command that has just started and written nothing."""
        return self._is_new and not self._starts

    def open_for_append(self) -> tuple[int, int]:
        """The file to append to and how many bytes may go there now."""
        if self._room() <= 0:
            if not self._starts or self.end > self._starts[-1]:
                self._start_file()
            while self.held + self._size > self.cap and len(self._starts) > 1:
                self.drop_oldest()
        allowed = self._quota.make_room()
        if self._fd is None:
            self._open_newest()
        assert self._fd is not None
        return self._fd, min(self._room(), allowed)

    def appended(self, count: int) -> None:
        self.end += count
        self._quota.used += count

    def drop_oldest(self) -> int:
        """Drop the oldest file. Returns how many bytes were dropped."""
        if self.end == self.first:
            return 0
        if len(self._starts) == 1:
            self._start_file()
        bundle.unlink(bundle.segment_path(self.directory, self.stream, self._starts.popleft()))
        dropped = self._starts[0] - self.first
        self.first = self._starts[0]
        self._quota.used += self.times.drop_before(self.first) - dropped
        return dropped

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _room(self) -> int:
        if not self._starts:
            return 0
        left = self._starts[-1] + self._size - self.end
        return min(left, self.cap - self.held) if self.times.size else left

    def _start_file(self) -> None:
        self.close()
        self._open(self.end)
        self._starts.append(self.end)
        failpoints.reach("segment-started")

    def _open_newest(self) -> None:
        self._open(self._starts[-1])

    def _open(self, start: int) -> None:
        # Not O_APPEND, which splice refuses: the position is the end of the file, also after a crash.
        path = bundle.segment_path(self.directory, self.stream, start)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.lseek(self._fd, 0, os.SEEK_END)


class ArrivalTimes:
    """The index of a log, in entries of bundle.TIME_ENTRY. No failure to write it affects the output.

    An entry is written before the output that it is for is moved: output that a new keeper moves has the time at which
    it came. The time of a new log's start is that of its first bytes, so that a short command has no index. Methods
    that write return by how many bytes the index has grown.
    """

    def __init__(self, path: str, limit: int, end: int | None) -> None:
        """`end` is that of the log; None for a new one."""
        self.size = 0
        self._path = path
        self._limit = limit
        self._due = time.monotonic() + _TIME_STEP if end is None else 0.0
        self._resize_due = 0.0
        self._shorten_due = 0.0
        self._noted = -1
        #: A size of the terminal for the next entry: it came less than 100 ms after another one.
        self._resized = (0, 0)
        if end is not None:
            self._load(end)

    def is_due(self) -> bool:
        return time.monotonic() >= self._due

    def note(self, first: int, end: int) -> int:
        """Output arrives at `end`; the log begins at `first`."""
        self._due = time.monotonic() + _TIME_STEP
        if end == self._noted and not self._resized[0]:
            return 0  # it could not be moved before, for example because the disk was full
        self._noted = end
        resized, self._resized = self._resized, (0, 0)
        return self._add(first, end, *resized)

    def note_resize(self, first: int, end: int, cols: int, rows: int) -> int:
        now = time.monotonic()
        if now < self._resize_due:
            self._resized, self._due = (cols, rows), 0.0  # with the next output
            return 0
        self._resize_due, self._resized = now + _TIME_STEP, (0, 0)
        return self._add(first, end, cols, rows)

    def drop_before(self, first: int) -> int:
        """The log begins at `first` now. Once a second, entries before it are dropped as well."""
        before = self.size
        if self.size and time.monotonic() >= self._shorten_due:
            self._shorten(first, self.size)
        return self.size - before

    def _add(self, first: int, offset: int, cols: int, rows: int) -> int:
        before, entry = self.size, bundle.TIME_ENTRY
        if before + entry.size > self._limit and before and time.monotonic() >= self._shorten_due:
            self._shorten(first, self._limit * 3 // 4)
        if self.size + entry.size <= self._limit:
            raw = entry.pack(max(0, int(time.time() * 1e6)), offset, cols & 0xFFFF, rows & 0xFFFF, 0)
            try:
                fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
                try:
                    # At its place, also behind an entry that a crash left incomplete.
                    self.size += entry.size if os.pwrite(fd, raw, self.size) == entry.size else 0
                finally:
                    os.close(fd)
            except OSError:
                pass  # the times of some output are not known
        return self.size - before

    def _load(self, end: int) -> None:
        entry = bundle.TIME_ENTRY
        try:
            entries = list(entry.iter_unpack(self._read(-entry.size)))
            if entries and entries[-1][1] > end:  # the log has lost its end in a power cut
                self._write([found for found in entry.iter_unpack(self._read(0)) if found[1] <= end])
        except OSError:
            return

    def _read(self, begin: int) -> bytes:
        """The complete entries from `begin` on; counted from the end if it is negative."""
        fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.size = os.fstat(fd).st_size // bundle.TIME_ENTRY.size * bundle.TIME_ENTRY.size
            return os.pread(fd, self.size, max(0, begin if begin >= 0 else self.size + begin))[: self.size]
        finally:
            os.close(fd)

    def _shorten(self, first: int, limit: int) -> None:
        """Drop what is before the log; of the rest, entries that are close to the one before until it fits."""
        self._shorten_due = time.monotonic() + _SHORTEN_PAUSE
        entry = bundle.TIME_ENTRY
        try:
            entries = list(entry.iter_unpack(self._read(0)))
            head = max((at for at, found in enumerate(entries) if found[1] <= first), default=0)
            kept, step = entries[head:], int(_TIME_STEP * 1e6)
            while len(kept) > 1 and len(kept) * entry.size > limit:
                step *= 2
                kept = _apart(kept, step)
            if len(kept) < len(entries):
                self._write(kept)
        except OSError:
            return

    def _write(self, entries: list[tuple[int, ...]]) -> None:
        fresh = f"{self._path}.new"
        bundle.unlink(fresh)
        try:
            bundle.create(fresh, b"".join([bundle.TIME_ENTRY.pack(*found) for found in entries]))
            os.rename(fresh, self._path)
        except OSError:
            bundle.unlink(fresh)
            raise
        self.size = len(entries) * bundle.TIME_ENTRY.size


def _apart(entries: list[tuple[int, ...]], step: int) -> list[tuple[int, ...]]:
    """The entries that are a step apart; resizes stay, unless they are closer than a tenth of it."""
    kept = entries[:1]
    for found in entries[1:]:
        if abs(found[0] - kept[-1][0]) >= (step // 10 if found[2] else step):
            kept.append(found)
    return kept


class Quota:
    """Drops bytes of the process that ended first, then of the largest log that is still written."""

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.used = 0
        self._live: set[Segments] = set()
        self._archives: OrderedDict[str, _Archive] = OrderedDict()

    def add(self, log: Segments) -> None:
        self._live.add(log)
        self.used += log.held

    def make_room(self) -> int:
        """Drop bytes until some may be appended. Returns how many may be, at least 1."""
        if self.total is None:
            return _LARGEST_SEGMENT
        while self.total - self.used < min(_AT_LEAST, self.total):
            if not self._drop_something():
                return 1
        return self.total - self.used

    def retire(self, log: Segments) -> None:
        """A log that is no longer written; `archive` counts it again with the rest of its bundle."""
        if log in self._live:
            self._live.discard(log)
            self.used -= log.held

    def archive(self, directory: str, held: int | None = None) -> None:
        """Count a bundle in done/, of which `held` bytes are known to be there.

        Such logs are dropped first, in the order in which they were archived.
        """
        if directory not in self._archives and (held is not None or os.path.isdir(directory)):
            archive = _Archive(directory, held)
            self._archives[directory] = archive
            self.used += archive.held

    def forget(self, directory: str) -> None:
        archive = self._archives.pop(directory, None)
        if archive is not None:
            self.used -= archive.held

    def _drop_something(self) -> int:
        while self._archives:
            directory, archive = next(iter(self._archives.items()))
            freed = archive.drop_oldest()
            self.used -= freed
            if freed:
                return freed
            del self._archives[directory]
        largest = max(self._live, key=lambda log: log.held, default=None)
        return largest.drop_oldest() if largest is not None else 0


class _Archive:
    """The segments of an archived bundle."""

    def __init__(self, directory: str, held: int | None) -> None:
        self._directory = directory
        self._found: list[tuple[bundle.Segment, str]] | None = None
        self.held = sum(segment.size for segment, _ in self._left()) if held is None else held

    def _left(self) -> list[tuple[bundle.Segment, str]]:
        """Looked up when the first one is needed."""
        if self._found is None:
            self._found = []
            for stream in bundle.FIFO:
                found = [segment for segment in bundle.segments(self._directory, stream) if segment.size]
                # Dropped from the end: the index after the last segment of its stream.
                self._found += [(index, stream) for index in _index_of(self._directory, stream)]
                self._found += [(segment, stream) for segment in reversed(found)]
        return self._found

    def drop_oldest(self) -> int:
        if not self.held or not self._left():
            return 0
        segment, stream = self._left().pop()
        following = bundle.segment_path(self._directory, stream, segment.start + segment.size)
        try:
            # The name of an empty successor keeps the offset where the log ended.
            if segment.start >= 0:
                os.close(os.open(following, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except FileNotFoundError:
            pass
        bundle.unlink(segment.path)
        self.held -= segment.size
        return segment.size


def _index_of(directory: str, stream: str) -> list[bundle.Segment]:
    """The index of an archived log, as a segment at -1; none if it has none."""
    path = bundle.times_path(directory, stream)
    try:
        return [bundle.Segment(-1, os.stat(path).st_size, path)]
    except FileNotFoundError:
        return []
