"""The daemon's line to the MCP worker: `python -m holdfast.mcp`, which speaks the protocol for `/mcp`.

It is started with the first request and let go of when there was none for a while. Each request gets a connection of
its own, one end of which is handed to the worker: nobody else can talk to it, so whoever is let in by the daemon was
looked at. One that died is replaced with the next request.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from typing import TypeAlias

from holdfast.daemon.logbook import note
from holdfast.errors import Unreachable, Unsupported
from holdfast.extras import install_hint

Connection: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

#: Longer than a client's session lasts without a request.
_IDLE = 3600.0
_TRIES = 3
#: They would have the worker speak with another daemon than the one that started it.
_ELSEWHERE = ("HOLDFAST_URL", "HOLDFAST_TOKEN")


class McpLink:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = {name: value for name, value in environ.items() if name not in _ELSEWHERE}
        self._worker: asyncio.subprocess.Process | None = None
        self._line: socket.socket | None = None
        self._starting = asyncio.Lock()
        self._open = 0
        self._rest: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int | None:
        return self._worker.pid if self._worker is not None and self._worker.returncode is None else None

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection to the worker, for one request. Raises Unsupported without the SDK, Unreachable."""
        reader, writer = await self._connected()
        self._open += 1
        try:
            yield reader, writer
        finally:
            self._open -= 1
            writer.close()
            self._rest_later()

    def close(self) -> None:
        """Let go of it; it ends by itself."""
        if self._rest is not None:
            self._rest.cancel()
        if self._line is not None:
            self._line.close()
            self._line = None

    async def _connected(self) -> Connection:
        for _ in range(_TRIES):
            line = await self._living()
            ours, theirs = socket.socketpair()
            try:
                with theirs:
                    await _hand_over(line, theirs)
            except OSError as gone:
                ours.close()
                note("mcp-worker-gone", why=gone)
                self.close()
                continue
            return await asyncio.open_connection(sock=ours)
        raise Unreachable("the MCP worker does not stay up", next="try again; holdfast doctor")

    async def _living(self) -> socket.socket:
        async with self._starting:
            if self._line is None or self.pid is None:
                self.close()
                await self._start()
            assert self._line is not None
            return self._line

    async def _start(self) -> None:
        if importlib.util.find_spec("mcp") is None:
            raise Unsupported("the MCP SDK is not installed", next=install_hint("mcp"))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            self._worker = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "holdfast.mcp", str(theirs.fileno())),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                cwd=_directory(self._environ),
                env=self._environ,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._line = ours
        note("mcp-worker", pid=self._worker.pid)

    def _rest_later(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
        self._rest = asyncio.get_running_loop().call_later(_IDLE, self._close_idle)

    def _close_idle(self) -> None:
        if not self._open:
            self.close()


async def _hand_over(line: socket.socket, end: socket.socket) -> None:
    """Raises OSError when nobody is there."""
    while True:
        try:
            socket.send_fds(line, [b"+"], [end.fileno()])
            return
        except BlockingIOError:  # it has many to take already
            await asyncio.sleep(0.01)


def _directory(environ: Mapping[str, str]) -> str:
    """Where sessions begin."""
    home = environ.get("HOME") or "/"
    return home if os.path.isdir(home) else "/"
