"""Accepts connections of a listening socket. At the limit of open files it pauses, says so once, and goes on by itself.

asyncio's own servers log a traceback for each place in their backlog then.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable

from holdfast.daemon.core.log import note

#: Accepted in one turn of the loop, so that a burst of connections delays no one else for long.
_AT_ONCE = 32
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
#: Failures that are closer together belong to one episode, which is logged once.
_EPISODE = 60.0


class Accepting:
    """Runs until `close`, which closes the listening socket, not the connections."""

    def __init__(self, listener: socket.socket, backlog: int, protocol: Callable[[], asyncio.Protocol]) -> None:
        self._listener = listener
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._pause = _FIRST_PAUSE
        self._failed_at = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[object]] = set()
        listener.setblocking(False)
        listener.listen(backlog)
        self._resume()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._listener.fileno() >= 0:
            self._loop.remove_reader(self._listener.fileno())
            self._listener.close()

    def _resume(self) -> None:
        self._timer = None
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                accepted, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as failed:
                self._back_off(failed)
                return
            accepted.setblocking(False)
            task = self._loop.create_task(self._begin(accepted), name="accept")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _begin(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, accepted)
        except OSError:
            accepted.close()  # the client has gone

    def _back_off(self, failed: OSError) -> None:
        """Clients that are connected are served meanwhile, and those that wait keep their place in the backlog."""
        now = time.monotonic()
        if now - self._failed_at > _EPISODE:
            self._pause = _FIRST_PAUSE
            note("accept-failed", why=failed, next="it is tried again; end clients, or raise the limit of open files")
        self._failed_at = now
        self._loop.remove_reader(self._listener.fileno())
        self._timer = self._loop.call_later(self._pause, self._resume)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
