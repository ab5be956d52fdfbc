"""Moves what a command writes into its log, so that a kill at any instant leaves each byte in exactly one place.

splice(2) is what makes it exact: a byte is in the pipe or in the file, never in this process.
"""

from __future__ import annotations

import errno
import os

from holdfast_keeper import kernel
from holdfast_keeper.segments import Segments

#: What one call moves before the others get their turn: what the pipe of a flood holds, the same for every flood.
_BUDGET = 1 << 20
_CHUNK = 1 << 20
_FULL_PIPE = 64 << 10
#: Moves that follow each other this closely or find a pipe half full, so many in a row, are a flood.
_CLOSE = 0.002
_FLOOD = 16
#: What a flood is allowed to gather before it is moved: a few large moves cost a fraction of many small ones.
_GATHER = 0.001
#: A terminal buffers less than this, so that much, read after the exit, is all that was written before it.
_TERMINAL_BUFFER = 128 << 10

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_disk_full(error: OSError) -> bool:
    return error.errno in _DISK_FULL


class PipePump:
    """A FIFO that commands write to, and its log."""

    def __init__(self, source: int, log: Segments) -> None:
        self.source = source
        self.log = log
        self.closed = False
        self._capacity = _FULL_PIPE
        self._last_move = 0.0
        self._in_a_row = 0
        self._moved = 0

    def pause(self, now: float) -> float:
        """After a move: how long to let the pipe fill up before the next one. Nothing, unless it is a flood."""
        is_more = now - self._last_move < _CLOSE or self._moved >= self._capacity // 2
        self._in_a_row = self._in_a_row + 1 if is_more else 0
        self._last_move = now
        if self._in_a_row == _FLOOD:
            # On demand only: without privileges a user gets 64 large pipes in all.
            self._capacity = kernel.grow_pipe(self.source, _CHUNK)
        has_room = self._capacity >= _CHUNK and self._moved < self._capacity // 2
        return _GATHER if self._in_a_row >= _FLOOD and has_room else 0.0

    def move(self, budget: int = _BUDGET) -> None:
        """Move what is there, up to the budget. Raises OSError when the disk has no room; nothing is lost then."""
        self._moved = 0
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

    def drain(self) -> int:
        """Move what was written up to now and no more, however busy other writers are; where the log then stands."""
        waiting = kernel.waiting_bytes(self.source)
        try:
            self.move(waiting)
        except OSError as error:
            if not is_disk_full(error):
                raise
            return self.log.end + kernel.waiting_bytes(self.source)
        return self.log.end


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
                # Linux looks for input first and for the end afterwards. What was written and closed in between is
                # still there, so only an end that is seen twice is one.
                count = self._take() or self._take()
            except BlockingIOError:
                return
            self.closed = count == 0
            self._empty_pipe()
            budget -= count

    def pause(self, now: float) -> float:
        """A terminal holds too little to gather anything."""
        return 0.0

    def drain(self) -> int:
        """As PipePump.drain."""
        try:
            self.move(_TERMINAL_BUFFER)
        except OSError as error:
            if not is_disk_full(error):
                raise
        return self.log.end + kernel.waiting_bytes(self._pipe_out)

    def _take(self) -> int:
        """Terminal to pipe; nothing at the end."""
        try:
            return os.splice(self.source, self._pipe_in, _FULL_PIPE)
        except OSError as error:
            if error.errno != errno.EIO:  # EIO: nobody has the terminal open any more
                raise
            return 0

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

    def pause(self, now: float) -> float:
        return 0.0

    def drain(self) -> int:
        return self.log.end


Pump = PipePump | TerminalPump | LostPump
