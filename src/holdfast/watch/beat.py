"""A few bytes that the daemon and the watch process share: what is being looked into, also when nobody can say it."""

from __future__ import annotations

import mmap
import os
import struct

_FORMAT = struct.Struct("QQ")


class Beat:
    """The number of the question that is looked into, 0 when none is; and how often that changed."""

    def __init__(self, fd: int) -> None:
        self._shared = mmap.mmap(fd, _FORMAT.size)
        self._count = 0

    def begin(self, number: int) -> None:
        self._count += 1
        _FORMAT.pack_into(self._shared, 0, number, self._count)

    def end(self) -> None:
        self.begin(0)

    def read(self) -> tuple[int, int]:
        number, count = _FORMAT.unpack_from(self._shared)
        return number, count

    def close(self) -> None:
        self._shared.close()


def create() -> int:
    """A descriptor for both; the caller closes it."""
    fd = os.memfd_create("holdfast-watch", os.MFD_CLOEXEC)
    os.ftruncate(fd, _FORMAT.size)
    return fd
