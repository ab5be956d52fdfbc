"""The door for HTTP on loopback TCP: shut unless its owner asked for it, and then the same after every restart.

`http_listen` in config.toml opens it; what was asked for by hand (the operation `http`) is kept in a file and counts
for more. Whoever comes in needs the token.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Callable
from typing import cast

from holdfast.daemon.logbook import note
from holdfast.errors import BadValue, HoldfastError, NotNow
from holdfast.model.addresses import Address, parse_address
from holdfast.paths import Paths

_BACKLOG = 128
#: Strangers of this machine can open connections, too: more than these at once are turned away.
_MOST_CONNECTIONS = 1000
#: A connection that says nothing for as long is closed.
_FIRST_WORD = 10.0
_PAUSE = 2.0

Welcome = Callable[[asyncio.Transport, bytes], None]


class TcpDoor:
    def __init__(self, paths: Paths, configured: str) -> None:
        self._paths = paths
        self._configured = configured
        self._welcome: Welcome | None = None
        self._listener: asyncio.Server | None = None
        self._turn = asyncio.Lock()
        self.visitors: set[asyncio.Transport] = set()
        #: What visitors must know.
        self.token = ""
        #: Where it listens; None while it is shut.
        self.address: Address | None = None

    async def serve(self, welcome: Welcome) -> None:
        """Open it where it was open before, or is configured to be; try again where another program is in the way."""
        self._welcome = welcome
        told = ""
        while True:
            try:
                return await self._reopen()
            except HoldfastError as refused:
                if refused.message != told:
                    told = refused.message
                    note("http-not-open", why=told)
            await asyncio.sleep(_PAUSE)

    async def _reopen(self) -> None:
        async with self._turn:
            wanted = _remembered(self._paths.http_listen)
            if wanted is None:
                wanted = self._configured
            if wanted and self._listener is None:
                await self._listen(parse_address(wanted))

    async def open(self, address: Address) -> Address:
        """Listen there, and from now on whenever the daemon runs. The token exists when this returns."""
        async with self._turn:
            if (
                self.address is not None
                and self.address.host == address.host
                and address.port in (0, self.address.port)
            ):
                return self.address
            before, self._listener = self._listener, None
            try:
                opened = await self._listen(address)
            except HoldfastError:
                self._listener = before
                raise
            if before is not None:
                before.close()
            _remember(self._paths.http_listen, str(opened))
            return opened

    async def shut(self) -> None:
        """Listen no longer, now and after restarts; whoever is inside is sent away."""
        async with self._turn:
            _remember(self._paths.http_listen, "")
            self.close()

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        self._listener, self.address = None, None
        for visitor in list(self.visitors):
            visitor.abort()

    async def _listen(self, address: Address) -> Address:
        self.token = make_token(self._paths.token)
        sock = _bound(address)
        self._listener = await asyncio.get_running_loop().create_server(
            lambda: Porter(self), sock=sock, backlog=_BACKLOG
        )
        self.address = address._replace(port=sock.getsockname()[1])
        note("http-open", at=self.address)
        return self.address

    def let_in(self, transport: asyncio.Transport, first: bytes) -> None:
        if self._welcome is not None:
            self._welcome(transport, first)


class Porter(asyncio.Protocol):
    """Waits for the first word of a visitor, and not for long."""

    def __init__(self, door: TcpDoor) -> None:
        self._door = door
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        visitors = self._door.visitors
        visitors.difference_update([visitor for visitor in visitors if visitor.is_closing()])
        if len(visitors) >= _MOST_CONNECTIONS:
            self._transport.abort()
            return
        visitors.add(self._transport)
        self._timer = asyncio.get_running_loop().call_later(_FIRST_WORD, self._transport.abort)

    def connection_lost(self, why: Exception | None) -> None:
        self._still()
        if self._transport is not None:
            self._door.visitors.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._still()
        if self._transport is not None and not self._transport.is_closing():
            self._door.let_in(self._transport, data)

    def _still(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def make_token(path: str) -> str:
    """The token of the instance, made once, for its owner's eyes alone."""
    with contextlib.suppress(FileNotFoundError):
        if token := read_token(path):
            return token
        os.unlink(path)
    token = secrets.token_urlsafe(32)
    with open(f"{path}.new", "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(f"{token}\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)
    return token


def read_token(path: str) -> str:
    """Raises FileNotFoundError where none was made; empty when it is no token."""
    with open(path, encoding="ascii", errors="replace") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            os.fchmod(file.fileno(), 0o600)
        token = file.read(1024).strip()
    return token if len(token) >= 16 and token.isascii() and token.isprintable() else ""


def _bound(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # The protocol is named because asyncio lets no packet wait only where it is.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address.host, address.port))
    except OSError as refused:
        sock.close()
        what = f"cannot listen on {address}: {refused.strerror or refused}"
        raise NotNow(what, next="choose another port: holdfast daemon http --port N") from refused
    sock.setblocking(False)
    return sock


def _remembered(path: str) -> str | None:
    """What was asked for by hand: an address, nothing (shut), or None when nobody asked."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            text = file.read(256).strip()
    except FileNotFoundError:
        return None
    try:
        return str(parse_address(text)) if text else ""
    except BadValue:
        return None


def _remember(path: str, text: str) -> None:
    with open(f"{path}.new", "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(f"{text}\n")
    os.replace(f"{path}.new", path)
