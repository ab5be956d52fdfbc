"""Tells the keeper that the command runs, a millisecond before exec is done.

Most of an exec goes into giving back the memory of who execs. Before that, and after the last moment at which it can
fail, the kernel ends all other threads of the process. So the spare leaves its line to the keeper with a thread that
has descriptors of its own and nothing to do: the line is cut at the very moment from which on nothing but the command
can run.
"""

from __future__ import annotations

import _thread
import os
import socket

from holdfast_keeper import kernel


class Witness:
    """The line to the keeper. It ends without a word when the process becomes the command, or dies."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._last_words = b""
        self._is_up = _thread.allocate_lock()
        self._may_speak = _thread.allocate_lock()
        self._is_up.acquire()
        self._may_speak.acquire()
        self._has_it = False
        try:
            _thread.start_new_thread(self._stand_by, ())
            self._is_up.acquire()
        except RuntimeError:
            pass  # no thread to be had: the line ends with the exec

    def leave_line(self) -> None:
        """From here on only the witness has it; to be called right before the exec."""
        if self._has_it:
            os.close(self._line.fileno())

    def say(self, last_words: bytes) -> None:
        """Tell the keeper, before or after `leave_line`, and be gone."""
        if self._has_it:
            self._last_words = last_words
            self._may_speak.release()
            self._is_up.acquire()  # never: the witness ends the process
        self._line.send(last_words)

    def _stand_by(self) -> None:
        self._has_it = kernel.keep_only(self._line.fileno())
        self._is_up.release()
        if self._has_it:
            self._may_speak.acquire()
            try:
                self._line.send(self._last_words)
            finally:
                os._exit(127)
