"""The daemon's door: a Unix socket for its owner alone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from holdfast.daemon.conversation import Conversation
from holdfast.daemon.logbook import note
from holdfast.daemon.room import Room
from holdfast.paths import Paths, make_directories
from holdfast.peers import peer_credentials

if TYPE_CHECKING:
    from holdfast.http.door import HttpDoor

_BACKLOG = 1024
#: Answers that are already written get this long to reach their clients when the daemon stops.
_FAREWELL = 1.0
_MISSING = (
    b"HTTP/1.1 501 Not Implemented\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: 69\r\n\r\n"
    b"holdfast was installed without what HTTP needs: pip install holdfast\n"
)


class Server:
    """Accepts clients until it is closed."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._conversations: set[Conversation] = set()
        self._nobody_there = asyncio.Event()
        self._nobody_there.set()
        self._listener: asyncio.Server | None = None
        self._door: os.stat_result | None = None
        self._http: HttpDoor | None = None

    async def open(self) -> None:
        await self._listen()
        self._room.chores.start(self._room.tcp.serve(self._welcome_on_tcp), "http")

    async def _listen(self) -> None:
        sock = _listen(self._room.paths)
        self._door = os.stat(self._room.paths.socket)
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_unix_server(lambda: Doorman(self._choose), sock=sock, backlog=_BACKLOG)

    async def reopen(self) -> None:
        """Be found again after somebody deleted the socket. Who talks with us goes on."""
        make_directories(self._room.paths)
        if self._listener is not None:
            self._listener.close()
        await self._listen()

    async def close(self) -> None:
        """Take no more requests, and let the answers that were given go out."""
        if self._listener is not None:
            self._listener.close()
        with contextlib.suppress(OSError):
            # Where our home was deleted, another daemon may have its door there now.
            if self._door is not None and os.path.samestat(self._door, os.stat(self._room.paths.socket)):
                os.unlink(self._room.paths.socket)
        for conversation in list(self._conversations):
            conversation.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FAREWELL):
                if self._http is not None:
                    await self._http.close()
                await self._nobody_there.wait()
        for conversation in list(self._conversations):
            conversation.abort()
        if self._http is not None:
            self._http.abort()
        self._room.tcp.close()

    def _choose(self, transport: asyncio.Transport, first: bytes) -> asyncio.Protocol | None:
        """Who talks with a client that begins like this: frames begin with 0, HTTP never does.

        None for now where HTTP has to be fetched first, which is done when the first client speaks it and not before.
        """
        if first[:1] != b"\0":
            self._welcome(transport, first, tcp=False)
            return None
        conversation = Conversation(self._room, self._ended)
        self._conversations.add(conversation)
        self._nobody_there.clear()
        return conversation

    def _welcome_on_tcp(self, transport: asyncio.Transport, first: bytes) -> None:
        self._welcome(transport, first, tcp=True)

    def _welcome(self, transport: asyncio.Transport, first: bytes, tcp: bool) -> None:
        if self._http is not None:
            _hand_over(transport, self._http.protocol(tcp, None if tcp else _peer(transport)[0]), first)
        else:
            transport.pause_reading()
            self._room.chores.start(self._fetch_http(transport, first, tcp), "http")

    async def _fetch_http(self, transport: asyncio.Transport, first: bytes, tcp: bool) -> None:
        """In a thread, for it takes a while."""
        try:
            door = await asyncio.to_thread(_import_door)
        except ImportError as missing:
            note("http-missing", why=missing)
            transport.write(_MISSING)
            transport.close()
            return
        if self._http is None:
            self._http = door(self._room)
        if not transport.is_closing():
            _hand_over(transport, self._http.protocol(tcp, None if tcp else _peer(transport)[0]), first)
            transport.resume_reading()

    def _ended(self, conversation: Conversation) -> None:
        self._conversations.discard(conversation)
        if not self._conversations:
            self._nobody_there.set()


def _import_door() -> type[HttpDoor]:
    from holdfast.http.door import HttpDoor

    return HttpDoor


def _peer(transport: asyncio.Transport) -> tuple[int, int, int]:
    return peer_credentials(transport.get_extra_info("socket"))


def _hand_over(transport: asyncio.Transport, protocol: asyncio.Protocol, first: bytes) -> None:
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    protocol.data_received(first)


class Doorman(asyncio.Protocol):
    """Lets the owner in, listens to the first byte, and hands the connection to whoever speaks that language."""

    def __init__(self, choose: Callable[[asyncio.Transport, bytes], asyncio.Protocol | None]) -> None:
        self._choose = choose
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        _, uid, _ = _peer(self._transport)
        if uid not in (os.geteuid(), 0):
            note("client-refused", uid=uid)
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        chosen = self._choose(self._transport, data)
        if chosen is not None:
            _hand_over(self._transport, chosen, data)


def _listen(paths: Paths) -> socket.socket:
    """The socket, for its owner alone from the first moment on. We hold the daemon's lock, so an old one may go."""
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
