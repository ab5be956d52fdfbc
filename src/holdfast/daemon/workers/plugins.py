"""Workers for the routers of plugins: `python -m holdfast.dashboard.plugin_worker`, a process for each plugin.

Each HTTP request and each WebSocket gets a connection of its own, as with the MCP worker. A process that gives no
answer in time is ended; the next request starts another one, after a pause that grows while they keep failing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Mapping
from typing import TypeAlias

from holdfast.daemon.core.log import note
from holdfast.daemon.workers.worker import Worker, WorkerLaunch
from holdfast.dashboard.plugins import Plugin
from holdfast.errors import HoldfastError, NotNow, Unreachable

Connection: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_TRIES = 3
#: WebSockets that one plugin has open.
_MOST_SOCKETS = 100
#: Failures in a row after which there is a pause before the next start.
_PATIENT_FAILURES = 3
_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
#: With these the plugin would speak to another daemon than the one that started it.
_ELSEWHERE = ("HOLDFAST_URL", "HOLDFAST_TOKEN", "HOLDFAST_BUS_URL", "HOLDFAST_BUS_TOKEN")


class PluginWorker(Worker):
    is_serial = False
    has_own_session = True
    idle_timeout = 600.0

    def __init__(self, plugin: Plugin, environ: Mapping[str, str]) -> None:
        super().__init__({name: value for name, value in environ.items() if name not in _ELSEWHERE})
        self.name = f"plugin {plugin.name}"
        self.cwd = plugin.directory
        self.stamp = stamp_of(plugin)
        self._arguments = (plugin.name, plugin.directory, str(plugin.api))
        #: Times in a row that the process died or gave no answer.
        self._failures = 0
        self._begins_at = 0.0
        self._sockets = 0

    def launch(self) -> WorkerLaunch:
        return WorkerLaunch(("-P", "-m", "holdfast.dashboard.plugin_worker", *self._arguments))

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection for one request. Raises Unreachable while there is a pause, and when it does not stay up."""
        self._check_pause()
        with self.in_use():
            reader, writer = await asyncio.open_connection(sock=await self._connected())
            try:
                yield reader, writer
            finally:
                writer.close()

    @contextlib.asynccontextmanager
    async def socket_connection(self) -> AsyncIterator[socket.socket]:
        """A connection for one WebSocket; the caller closes it. Raises as `connection`, and NotNow for too many."""
        self._check_pause()
        if self._sockets >= _MOST_SOCKETS:
            raise NotNow(f"the {self.name} has {_MOST_SOCKETS} open WebSockets", next="close some of them")
        self._sockets += 1
        try:
            with self.in_use():
                yield await self._connected()
        finally:
            self._sockets -= 1

    def _check_pause(self) -> None:
        pause = self._begins_at - time.monotonic()
        if self.pid is None and pause > 0:
            raise Unreachable(f"the router of the {self.name} keeps failing", next=f"try again in {pause:.0f} s")

    def answered(self) -> None:
        self._failures = 0

    def failed(self) -> None:
        """It died over a request."""
        self._failures += 1
        if self._failures >= _PATIENT_FAILURES:
            longer = 2.0 ** min(self._failures - _PATIENT_FAILURES, 10)
            self._begins_at = time.monotonic() + min(_PAUSE * longer, _LONGEST_PAUSE)

    def hangs(self) -> None:
        """It gave no answer in time: end it."""
        note("plugin-hangs", worker=self.name, pid=self.pid)
        self.failed()
        self.kill()

    def kill(self) -> None:
        if (run := self._run) is not None:
            self._end(run)
            run.kill()

    async def _connected(self) -> socket.socket:
        for _ in range(_TRIES):
            with contextlib.suppress(OSError):
                return await self.connect()
        raise Unreachable(f"the router of the {self.name} does not stay up", next="see daemon.log")


class PluginRouters:
    """The workers of all plugins, each started with the first request for it."""

    def __init__(self, environ: Mapping[str, str], timeout: float) -> None:
        self._environ = environ
        self.timeout = timeout
        self._workers: dict[str, PluginWorker] = {}

    async def of(self, plugin: Plugin) -> PluginWorker:
        """The worker of a plugin; a new one where its code has changed."""
        worker = self._workers.get(plugin.name)
        if worker is not None and worker.stamp != await asyncio.to_thread(stamp_of, plugin):
            worker.close()
            worker = None
        if worker is None:
            worker = self._workers[plugin.name] = PluginWorker(plugin, self._environ)
        return worker

    async def end(self, name: str) -> None:
        """No code of this plugin runs when this returns."""
        if (worker := self._workers.pop(name, None)) is not None:
            worker.kill()
            await worker.aclose()

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()


def stamp_of(plugin: Plugin) -> tuple[str, int, int]:
    """Changes with the file. Raises HoldfastError."""
    path = os.path.join(plugin.directory, str(plugin.api))
    try:
        found = os.stat(path)
    except OSError as failed:
        raise HoldfastError(f"{plugin.api}: {failed.strerror}", next="holdfast dashboard plugins") from None
    return path, found.st_mtime_ns, found.st_size
