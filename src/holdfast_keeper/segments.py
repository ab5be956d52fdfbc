"""The log of one stream: files named by the offset of their first byte. Offsets never change."""

from __future__ import annotations

import os
from collections import OrderedDict, deque
from typing import Protocol

from holdfast_keeper import bundle, failpoints

_LARGEST = 8 << 20
_SMALLEST = 8 << 10


class Segments:
    """Appends to the newest file and drops the oldest, so that at most `cap` bytes are kept.

    A file is dropped only when it has a successor: a new keeper learns the offset from the name of the newest file.
    """

    def __init__(self, directory: str, stream: str, cap: int, quota: Quota, is_new: bool = False) -> None:
        self.directory = directory
        self.stream = stream
        self.cap = cap
        self._quota = quota
        self._is_new = is_new
        self._size = max(_SMALLEST, min(_LARGEST, cap // 8))
        found = [] if is_new else bundle.segments(directory, stream)
        self._starts = deque(segment.start for segment in found)
        self.first = found[0].start if found else 0
        self.end = found[-1].start + found[-1].size if found else 0
        self._fd: int | None = None
        quota.add(self)

    @property
    def held(self) -> int:
        return self.end - self.first

    @property
    def is_untouched(self) -> bool:
        """Whether it is the log of a command that has just started and written nothing."""
        return self._is_new and not self._starts

    def open_for_append(self) -> tuple[int, int]:
        """The file to append to and how many bytes may go there now."""
        if self._room() == 0:
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
        if not self.held:
            return 0
        if len(self._starts) == 1:
            self._start_file()
        bundle.unlink(bundle.segment_path(self.directory, self.stream, self._starts.popleft()))
        dropped = self._starts[0] - self.first
        self.first = self._starts[0]
        self._quota.used -= dropped
        return dropped

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _room(self) -> int:
        return self._starts[-1] + self._size - self.end if self._starts else 0

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


_STEP = 8 << 20
_AT_LEAST = 64 << 10


class CappedLog(Protocol):
    """A log that counts against the quota and can drop its oldest bytes."""

    @property
    def held(self) -> int: ...

    def drop_oldest(self) -> int: ...


class Quota:
    """Drops bytes of the process that ended first, then of the largest log that is still written."""

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.used = 0
        self._live: set[CappedLog] = set()
        self._archives: OrderedDict[str, _Archive] = OrderedDict()

    def add(self, log: CappedLog) -> None:
        self._live.add(log)
        self.used += log.held

    def make_room(self) -> int:
        """Drop bytes until some may be appended. Returns how many may be, at least 1."""
        if self.total is None:
            return _STEP
        while self.total - self.used < min(_AT_LEAST, self.total):
            if not self._drop_something():
                return 1
        return self.total - self.used

    def retire(self, log: CappedLog) -> None:
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
            self._found = [
                (segment, stream)
                for stream in bundle.FIFO
                for segment in reversed(bundle.segments(self._directory, stream))
                if segment.size
            ]
        return self._found

    def drop_oldest(self) -> int:
        if not self.held or not self._left():
            return 0
        segment, stream = self._left().pop()
        following = bundle.segment_path(self._directory, stream, segment.start + segment.size)
        try:
            # The name of an empty successor keeps the offset where the log ended.
            os.close(os.open(following, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except FileNotFoundError:
            pass
        bundle.unlink(segment.path)
        self.held -= segment.size
        return segment.size
