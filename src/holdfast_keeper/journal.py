"""The input journal: a memory file with what was written to a command, passed on with splice(2).

All holders share the descriptor, and with it the position: after a kill the next keeper continues with the next byte.
Typed input is never on a disk. End of input is a seal on the file, so it is shared as well.
"""

from __future__ import annotations

import fcntl
import os

from holdfast_keeper import kernel

_SEALED = fcntl.F_SEAL_GROW
_PAGE = 4096
#: Writes are refused when a command leaves this much unread.
LIMIT = 16 << 20
#: A pipe may still refer to pages this far behind the position.
_IN_THE_PIPE = 1 << 20


class Gap(Exception):
    """A write that starts beyond what was accepted."""


class Full(Exception):
    """The command does not read its input."""


class Closed(Exception):
    """The input was closed."""


class Journal:
    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._punched = 0

    @classmethod
    def create(cls) -> Journal:
        return cls(os.memfd_create("holdfast-stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))

    @property
    def accepted(self) -> int:
        return os.fstat(self.fd).st_size

    @property
    def passed_on(self) -> int:
        return os.lseek(self.fd, 0, os.SEEK_CUR)

    @property
    def is_sealed(self) -> bool:
        return bool(fcntl.fcntl(self.fd, fcntl.F_GET_SEALS) & _SEALED)

    def seal(self) -> None:
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _SEALED)

    def write(self, data: bytes, at: int | None) -> int:
        """Append data; with `at`, without what was accepted before. Returns the new end. Raises Closed, Gap, Full."""
        if self.is_sealed:
            raise Closed
        accepted = self.accepted
        if at is not None:
            if at > accepted:
                raise Gap
            data = data[accepted - at :]
        if accepted - self.passed_on + len(data) > LIMIT:
            raise Full
        written = 0
        while written < len(data):
            written += os.pwrite(self.fd, data[written:], accepted + written)
        return accepted + len(data)

    def release(self) -> None:
        """Free the memory of what the command has certainly read."""
        behind = (self.passed_on - _IN_THE_PIPE) // _PAGE * _PAGE
        if behind > self._punched:
            kernel.punch_hole(self.fd, self._punched, behind - self._punched)
            self._punched = behind

    def wipe(self) -> None:
        """Erase what was passed on, except its last byte: it may be a password. A terminal has copied it by now."""
        behind = self.passed_on - 1
        if behind > self._punched:
            kernel.punch_hole(self.fd, self._punched, behind - self._punched)
            self._punched = behind


class PipeInput:
    """Journal -> the FIFO that is the command's stdin."""

    def __init__(self, journal: Journal, sink: int) -> None:
        self.journal = journal
        self.sink = sink

    def move(self) -> bool:
        """Pass on what the pipe takes; whether there is more. Raises BrokenPipeError when the command closed it."""
        try:
            while os.splice(self.journal.fd, self.sink, _IN_THE_PIPE):
                pass
        except BlockingIOError:
            return True
        self.journal.release()
        return False


class TerminalInput:
    """Journal -> pipe -> the master of the PTY."""

    def __init__(self, journal: Journal, sink: int, pipe: tuple[int, int]) -> None:
        self.journal = journal
        self.sink = sink
        self._pipe_out, self._pipe_in = pipe

    def move(self) -> bool:
        """As PipeInput.move."""
        if self._is_stuck():
            return True
        while os.splice(self.journal.fd, self._pipe_in, _PAGE):
            if self._is_stuck():
                return True
        self.journal.wipe()
        return False

    def _is_stuck(self) -> bool:
        """Empty the pipe into the terminal; whether the terminal is full."""
        while kernel.waiting_bytes(self._pipe_out):
            try:
                os.splice(self._pipe_out, self.sink, _PAGE)
            except BlockingIOError:
                return True
        return False


Input = PipeInput | TerminalInput
