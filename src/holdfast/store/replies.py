"""Which notices replies are about to deliver, or have delivered: a small file that is ahead of the store.

A commit for each would cost more than the reply. The file survives the daemon, not the machine: a machine that fails
takes the client that got the reply with it. It has slots of a fixed size, which are written with one call each.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

_SLOTS = 1024
_SIZE = 32
_ID = re.compile(rb"note_[0-9a-f]{12}")
_CLAIMED, _HAD, _FREE = b"c", b"h", b"-"


class ReplyRecord:
    """In the file `path`. Where it cannot be written, `claim` and `had` return False: then the store must do it."""

    def __init__(self, path: str) -> None:
        self._slots: dict[str, int] = {}
        self._free = list(reversed(range(_SLOTS)))
        #: What the daemon before this one wrote: ids of notices, and those of them that were delivered.
        self.found: set[str] = set()
        self.found_had: set[str] = set()
        self._fd = -1
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return
        try:
            self._read(os.pread(fd, _SLOTS * _SIZE, 0))
            os.posix_fallocate(fd, 0, _SLOTS * _SIZE)
        except OSError:
            os.close(fd)
        else:
            self._fd = fd

    def _read(self, data: bytes) -> None:
        for number in range(len(data) // _SIZE):
            state, text = data[number * _SIZE : number * _SIZE + 1], data[number * _SIZE + 1 : (number + 1) * _SIZE]
            name = text.rstrip(b"\0")
            if state in (_CLAIMED, _HAD) and _ID.fullmatch(name):
                self.found.add(name.decode())
                if state == _HAD:
                    self.found_had.add(name.decode())
                self._slots[name.decode()] = number
                self._free.remove(number)

    def claim(self, id_: str) -> bool:
        """A reply is about to deliver this notice."""
        return self._put(id_, _CLAIMED)

    def had(self, id_: str) -> bool:
        """The session has the reply. The store follows."""
        return self._put(id_, _HAD)

    def forget(self, ids: Iterable[str]) -> None:
        """The store has it, or the reply was not delivered."""
        for id_ in ids:
            number = self._slots.pop(id_, None)
            if number is not None and self._write(number, _FREE, ""):
                self._free.append(number)

    def _put(self, id_: str, state: bytes) -> bool:
        number = self._slots.get(id_)
        if number is None:
            if not self._free:
                return False
            number = self._slots[id_] = self._free.pop()
        if self._write(number, state, id_):
            return True
        if state == _CLAIMED:
            self.forget([id_])
        return False

    def _write(self, number: int, state: bytes, id_: str) -> bool:
        try:
            return os.pwrite(self._fd, state + id_.encode().ljust(_SIZE - 1, b"\0"), number * _SIZE) == _SIZE
        except OSError:
            return False
