"""Moves the output of a command into its log with splice(2).

A kill at any moment leaves each byte in exactly one place: in the pipe or in the file, never in this process.
"""

from __future__ import annotations

import errno
import os

from holdfast_keeper import kernel
from holdfast_keeper.segments import Segments

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
        if self.log.is_untouched and not self._has_input():
            return  # no file for a command that writes nothing
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
        """Move what was written up to now and no more, however busy other writers are. Returns where that ends."""
        waiting = kernel.waiting_bytes(self.source)
        try:
            self.move(waiting)
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
            target, room = self.log.open_for_append()
            self.log.appended(os.splice(self._pipe_out, target, room))


class LostPump:
    """A terminal whose master is lost: its log can be read, and no more is added to it."""

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
