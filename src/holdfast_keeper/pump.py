"""Moves what a command writes into its log, so that a kill at any instant leaves each byte in exactly one place.

splice(2) is what makes it exact: a byte is in the pipe or in the file, never in this process.
"""

from __future__ import annotations

import errno
import os

from holdfast_keeper import kernel
from holdfast_keeper.segments import Segments

#: What one call moves before the other processes get their turn.
_BUDGET = 4 << 20
_CHUNK = 1 << 20
#: The default size of a pipe: a reader that finds it full again and again is too slow for it.
_FULL_PIPE = 64 << 10
_FULL_PIPES_BEFORE_GROWING = 4
#: A terminal buffers less than this, so that much, read after the exit, is all that was written before it.
_TERMINAL_BUFFER = 128 << 10

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_no_room(error: OSError) -> bool:
    return error.errno in _NO_ROOM


class PipePump:
    """A FIFO that commands write to, and its log."""

    def __init__(self, source: int, log: Segments) -> None:
        self.source = source
        self.log = log
        self.closed = False
        self._full = 0

    def move(self, budget: int = _BUDGET) -> None:
        """Move what is there, up to the budget. Raises OSError when the disk has no room; nothing is lost then."""
        while budget > 0 and not self.closed:
            target, room = self.log.open_for_append()
            try:
                count = os.splice(self.source, target, min(room, budget, _CHUNK))
            except BlockingIOError:
                return
            self.log.appended(count)
            self.closed = count == 0
            self._grow_when_flooded(count)
            budget -= count

    def drain(self) -> int:
        """Move what was written up to now and no more, however busy other writers are; where the log then stands."""
        waiting = kernel.waiting_bytes(self.source)
        try:
            self.move(waiting)
        except OSError as error:
            if not is_no_room(error):
                raise
            return self.log.end + kernel.waiting_bytes(self.source)
        return self.log.end

    def _grow_when_flooded(self, count: int) -> None:
        # On demand only: without privileges a user gets 64 large pipes in all.
        if count >= _FULL_PIPE and self._full <= _FULL_PIPES_BEFORE_GROWING:
            self._full += 1
            if self._full == _FULL_PIPES_BEFORE_GROWING:
                kernel.grow_pipe(self.source, _CHUNK)


class TerminalPump:
    """The master of a PTY, its log, and the pipe between them that splice needs."""

    def __init__(self, source: int, pipe: tuple[int, int], log: Segments) -> None:
        self.source = source
        self._pipe_out, self._pipe_in = pipe
        self.log = log
        self.closed = False

    def move(self, budget: int = _BUDGET) -> None:
        """As PipePump.move. What a killed keeper left in the pipe goes first."""
        self._empty_pipe()
        while budget > 0 and not self.closed:
            try:
                count = os.splice(self.source, self._pipe_in, _FULL_PIPE)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.EIO:  # EIO: nobody has the terminal open any more
                    raise
                count = 0
            self.closed = count == 0
            self._empty_pipe()
            budget -= count

    def drain(self) -> int:
        """As PipePump.drain."""
        try:
            self.move(_TERMINAL_BUFFER)
        except OSError as error:
            if not is_no_room(error):
                raise
        return self.log.end + kernel.waiting_bytes(self._pipe_out)

    def _empty_pipe(self) -> None:
        while kernel.waiting_bytes(self._pipe_out):
            target, room = self.log.open_for_append()
            self.log.appended(os.splice(self._pipe_out, target, room))


class LostPump:
    """A terminal whose master nobody holds any more: its log can be read, nothing is added to it."""

    closed = True

    def __init__(self, log: Segments) -> None:
        self.log = log
        self.source = -1

    def move(self, budget: int = 0) -> None:
        return

    def drain(self) -> int:
        return self.log.end


Pump = PipePump | TerminalPump | LostPump
