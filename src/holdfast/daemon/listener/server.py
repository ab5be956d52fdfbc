"""The daemon's listener: a Unix socket for its owner alone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.core.log import note
from holdfast.daemon.listener import file_limit
from holdfast.daemon.listener.accepting import Accepting, BoundOrigin, Caller, CallerAncestry
from holdfast.daemon.listener.connection import SocketConnection
from holdfast.daemon.listener.tcp import TcpListener
from holdfast.extras import install_hint
from holdfast.paths import Paths, make_directories
from holdfast.wire.frames import peer_credentials

if TYPE_CHECKING:
    from holdfast.http.listener import HttpListener

_BACKLOG = 1024
#: When the daemon stops, replies that are already written get this long to reach their clients.
_CLOSE_TIMEOUT = 1.0


class Server:
    """Accepts clients until it is closed."""

    def __init__(self, context: DaemonContext) -> None:
        self._context = context
        self._connections: set[SocketConnection] = set()
        self._all_closed = asyncio.Event()
        self._all_closed.set()
        self._listener: Accepting | None = None
        self._socket_file: os.stat_result | None = None
        self._http: HttpListener | None = None
        self._is_closed = False

    async def open(self) -> None:
        self._listen()
        for listener in (self._context.tcp, self._context.tls):
            self._context.background.start(listener.serve(partial(self._accept_http, tcp=listener)), "http")

    def _listen(self) -> None:
        sock = _listen(self._context.paths)
        self._socket_file = os.stat(self._context.paths.socket)
        self._listener = Accepting(sock, _BACKLOG, lambda: ProtocolChooser(self._context.ancestry, self._choose))

    async def reopen(self) -> None:
        """Listen again after the socket file was deleted. Open connections stay."""
        make_directories(self._context.paths)
        if self._listener is not None:
            self._listener.close()
        self._listen()

    async def close(self) -> None:
        """Accept no more requests, and send the replies that are written."""
        self._is_closed = True
        with contextlib.suppress(OSError):
            # First: a missing socket file tells clients that the daemon was stopped and did not crash.
            # Where the home directory was deleted, another daemon may listen there now.
            if self._socket_file is not None and os.path.samestat(
                self._socket_file, os.stat(self._context.paths.socket)
            ):
                os.unlink(self._context.paths.socket)
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            connection.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                if self._http is not None:
                    await self._http.close()
                await self._all_closed.wait()
        for connection in list(self._connections):
            connection.abort()
        if self._http is not None:
            self._http.abort()
        self._context.tcp.close()
        self._context.tls.close()

    def _choose(self, transport: asyncio.Transport, first: bytes, caller: Caller) -> asyncio.Protocol | None:
        """The protocol of a client whose first bytes are these: frames begin with 0, HTTP never does.

        None where HTTP takes over later: its modules are imported when the first client speaks it. None also where the
        daemon stops: the client has to ask the next one.
        """
        if self._context.stop_asked.is_set() or self._is_closed:
            transport.abort()
            return None
        if first[:1] != b"\0":
            self._accept_http(transport, first, caller.origin, tcp=None)
            return None
        connection = SocketConnection(self._context, caller, self._ended)
        self._connections.add(connection)
        self._all_closed.clear()
        return connection

    def _accept_http(
        self, transport: asyncio.Transport, first: bytes, origin: BoundOrigin | None = None, *, tcp: TcpListener | None
    ) -> None:
        if self._http is not None:
            _hand_over(transport, self._http_protocol(self._http, transport, origin, tcp), first)
        else:
            transport.pause_reading()
            self._context.background.start(self._load_http(transport, first, origin, tcp), "http")

    async def _load_http(
        self, transport: asyncio.Transport, first: bytes, origin: BoundOrigin | None, tcp: TcpListener | None
    ) -> None:
        """In a thread: the import takes a while."""
        try:
            listener = await asyncio.to_thread(_import_listener)
        except ImportError as missing:
            note("http-missing", why=missing)
            transport.write(_without_http())
            transport.close()
            return
        if self._http is None:
            self._http = listener(self._context)
        if not transport.is_closing():
            _hand_over(transport, self._http_protocol(self._http, transport, origin, tcp), first)
            transport.resume_reading()

    def _http_protocol(
        self, http: HttpListener, transport: asyncio.Transport, origin: BoundOrigin | None, tcp: TcpListener | None
    ) -> asyncio.Protocol:
        return http.protocol(transport, origin, partial(tcp.has_token, transport) if tcp is not None else None)

    def _ended(self, connection: SocketConnection) -> None:
        self._connections.discard(connection)
        if not self._connections:
            self._all_closed.set()


def _without_http() -> bytes:
    """The reply to HTTP where its packages are missing."""
    body = f"holdfast was installed without what HTTP needs: {install_hint()}\n".encode()
    head = f"Content-Type: text/plain\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    return b"HTTP/1.1 501 Not Implemented\r\n" + head + body


def _import_listener() -> type[HttpListener]:
    from holdfast.http.listener import HttpListener

    return HttpListener


def _hand_over(transport: asyncio.Transport, protocol: asyncio.Protocol, first: bytes) -> None:
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    protocol.data_received(first)


class ProtocolChooser(asyncio.Protocol):
    """Accepts the owner alone, reads the first bytes, and passes the connection to the protocol that they belong to.

    Where the caller comes from is decided here, before it can pass the connection to another process unseen.
    """

    def __init__(
        self,
        ancestry: CallerAncestry,
        choose: Callable[[asyncio.Transport, bytes, Caller], asyncio.Protocol | None],
    ) -> None:
        self._ancestry = ancestry
        self._choose = choose
        self._transport: asyncio.Transport | None = None
        self._caller: Caller | None = None
        self._failed: OSError | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        sock = self._transport.get_extra_info("socket")
        pid, uid, _ = peer_credentials(sock)
        if uid not in (os.geteuid(), 0):
            note("client-refused", uid=uid)
            self._transport.abort()
            return
        try:
            self._caller = Caller(pid, self._ancestry.of(sock, pid))
        except OSError as failed:
            self._failed = failed

    def data_received(self, data: bytes) -> None:
        if self._transport is not None and self._failed is not None and not self._transport.is_closing():
            self._transport.write(file_limit.refusal(data, self._failed))
            self._transport.close()
        if self._transport is None or self._caller is None:
            return
        chosen = self._choose(self._transport, data, self._caller)
        if chosen is not None:
            _hand_over(self._transport, chosen, data)


def _listen(paths: Paths) -> socket.socket:
    """The socket, with its mode set from the start. The daemon's lock is held, so an old socket file may be removed."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(paths.socket)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Through a descriptor, because the path of a socket has 107 bytes at most.
    directory = os.open(paths.runtime, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    before = os.umask(0o177)
    try:
        sock.bind(f"/proc/self/fd/{directory}/{os.path.basename(paths.socket)}")
    finally:
        os.umask(before)
        os.close(directory)
    sock.setblocking(False)
    return sock
