"""The limit on the bytes of output that all processes of a place keep together."""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import Protocol

from holdfast_keeper import bundle

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

    def archive(self, directory: str) -> None:
        """Count a bundle in done/. Such logs are dropped first, in the order in which they were archived."""
        if directory not in self._archives and os.path.isdir(directory):
            archive = _Archive(directory)
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

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._left = [
            (segment, stream)
            for stream in bundle.FIFO
            for segment in reversed(bundle.segments(directory, stream))
            if segment.size
        ]
        self.held = sum(segment.size for segment, _ in self._left)

    def drop_oldest(self) -> int:
        if not self._left:
            return 0
        segment, stream = self._left.pop()
        following = bundle.segment_path(self._directory, stream, segment.start + segment.size)
        try:
            # The name of an empty successor keeps the offset where the log ended.
            os.close(os.open(following, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except FileNotFoundError:
            pass
        bundle.unlink(segment.path)
        self.held -= segment.size
        return segment.size
