"""The log of one stream, read by byte offset while the keeper appends, drops its head or moves its directory.

Everything here blocks and is meant for a thread, but for `Log.read_nowait`.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from types import TracebackType
from typing import NamedTuple

from holdfast_keeper import bundle
from holdfast_keeper.bundle import Segment

#: What one read gives at most, so that no reader needs more memory than this.
CHUNK = 256 << 10

_ATTEMPTS = 100


class Chunk(NamedTuple):
    """Bytes and where they begin: later than asked for when what was asked for has been dropped."""

    offset: int
    data: bytes

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


class Extent(NamedTuple):
    """What is there: what lies before `first` was dropped."""

    first: int
    end: int


class Log:
    """The log of one stream of one process. A process without a bundle has an empty one."""

    def __init__(self, place: str, process_id: str, stream: str) -> None:
        self.stream = stream
        #: The directory itself, also after it was moved.
        self._directory = _open_bundle(place, process_id)
        self._path = f"/proc/self/fd/{self._directory}"
        #: Where the segments begin, as far as known: all but the last are complete.
        self._starts: list[int] = []
        self._start = 0
        self._fd = -1

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._close_segment()
        if self._directory >= 0:
            os.close(self._directory)
            self._directory = -1

    def extent(self) -> Extent:
        found = self._segments()
        if not found:
            return Extent(0, 0)
        return Extent(found[0].start, found[-1].start + found[-1].size)

    def last_change(self) -> float | None:
        """When it last grew; None when it never did."""
        newest = next((segment for segment in reversed(self._segments()) if segment.size), None)
        try:
            return None if newest is None else os.stat(newest.path).st_mtime
        except FileNotFoundError:  # dropped meanwhile
            return None

    def started(self) -> float | None:
        """When its process was first started; None when its bundle is gone."""
        try:
            return os.stat(f"{self._path}/{bundle.SPEC}").st_mtime
        except OSError:
            return None

    def time_entries(self) -> list[tuple[int, ...]]:
        """The complete entries of its index of times (bundle.TIME_ENTRY); none where it has none."""
        try:
            with open(bundle.open_file(bundle.times_path(self._path, self.stream)), "rb") as file:
                data = file.read()
        except OSError:
            return []
        return list(bundle.TIME_ENTRY.iter_unpack(data[: len(data) // bundle.TIME_ENTRY.size * bundle.TIME_ENTRY.size]))

    def read(self, offset: int, limit: int = CHUNK) -> Chunk:
        """What follows `offset`; nothing at the end of the log. Never crosses into the next segment."""
        for _ in range(_ATTEMPTS):
            data = self._pread(offset, limit)
            if data:
                return Chunk(offset, data)
            following = self._turn_to(offset)
            if following is None:
                return Chunk(offset, self._pread(offset, limit))
            offset = following
        return Chunk(offset, b"")  # its head is dropped faster than it can be read

    def read_nowait(self, offset: int, limit: int = CHUNK, is_new: bool = False) -> Chunk | None:
        """As `read`, but only what is in memory already; None when finding out might have to wait.

        `is_new`: it was written a moment ago, so that to open its file does not wait.
        """
        if self._fd < 0 or offset < self._start:
            following = self._turn_to(offset) if is_new else None
            if following is None:
                return None
            offset = following
        at = offset - self._start
        try:
            buffer = bytearray(max(0, min(limit, os.fstat(self._fd).st_size - at)))
            count = os.preadv(self._fd, [buffer], at, os.RWF_NOWAIT)
        except OSError:  # not in memory, or a file system that cannot say
            return None
        return Chunk(offset, bytes(memoryview(buffer)[:count])) if count else None

    def _pread(self, offset: int, limit: int) -> bytes:
        if self._fd < 0 or offset < self._start:
            return b""
        return os.pread(self._fd, min(limit, CHUNK), offset - self._start)

    def _turn_to(self, offset: int) -> int | None:
        """Open the segment with the next byte that is left from `offset` on; where that is, None when at the end."""
        for _ in range(_ATTEMPTS):
            if not self._starts or offset >= self._starts[-1]:
                self._starts = [segment.start for segment in self._segments()]
            try:
                return self._open_holder(offset)
            except FileNotFoundError:  # dropped meanwhile
                self._starts = []
        return None

    def _open_holder(self, offset: int) -> int | None:
        for start in self._starts[max(0, bisect_right(self._starts, offset) - 1) :]:
            self._open_segment(start)
            offset = max(offset, start)
            if offset - start < os.fstat(self._fd).st_size:
                return offset
        return None

    def _open_segment(self, start: int) -> None:
        fd = bundle.open_file(bundle.segment_path(self._path, self.stream, start))
        self._close_segment()
        self._fd, self._start = fd, start

    def _close_segment(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _segments(self) -> list[Segment]:
        if self._directory < 0:
            return []
        for _ in range(_ATTEMPTS):
            try:
                return bundle.segments(self._path, self.stream)
            except FileNotFoundError:  # one was dropped meanwhile, or the bundle was deleted
                continue
        return []


def _open_bundle(place: str, process_id: str) -> int:
    directory = bundle.open_directory(place, process_id)
    return -1 if directory is None else directory
