"""Reports to the keeper that the command runs, a millisecond before the exec is done.

Most of the time of an exec is spent on freeing the memory of the calling process. Before that, once the exec can no
longer fail, the kernel ends all other threads of the process. So the spare leaves its connection to the keeper to an
idle thread with a descriptor table of its own: the connection is closed at the moment when the command is certain to
run.
"""

from __future__ import annotations

import _thread
import os
import socket

from holdfast_keeper import kernel


class Witness:
    """The connection to the keeper. It is closed without a message when the process becomes the command, or dies."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._message = b""
        self._is_ready = _thread.allocate_lock()
        self._may_send = _thread.allocate_lock()
        self._is_ready.acquire()
        self._may_send.acquire()
        self._has_own_fds = False
        try:
            _thread.start_new_thread(self._stand_by, ())
            self._is_ready.acquire()
        except RuntimeError:
            pass  # no thread can be started: the connection is closed by the exec

    def leave_line(self) -> None:
        """Close the connection in this thread, so that only the witness thread has it. To be called before the exec."""
        if self._has_own_fds:
            os.close(self._line.fileno())

    def report_failure(self, message: bytes) -> None:
        """Send the report of a failure, before or after `leave_line`. Ends the process where there is a thread."""
        if self._has_own_fds:
            self._message = message
            self._may_send.release()
            self._is_ready.acquire()  # blocks until the witness thread ends the process
        self._line.send(message)

    def _stand_by(self) -> None:
        self._has_own_fds = kernel.keep_only(self._line.fileno())
        self._is_ready.release()
        if self._has_own_fds:
            self._may_send.acquire()
            try:
                self._line.send(self._message)
            finally:
                os._exit(127)
