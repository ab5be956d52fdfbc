"""The listener for HTTP on loopback TCP: closed unless the owner asked for it, and then open after every restart.

`http_listen` in config.toml opens it. What the operation `http` set is kept in a file and overrides that. Clients need
the token.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from holdfast import files, light_json
from holdfast.daemon.core.log import note
from holdfast.daemon.listener.accepting import Accepting
from holdfast.errors import BadValue, HoldfastError, NotNow
from holdfast.model.addresses import Address, parse_address, parse_any_address
from holdfast.paths import Paths
from holdfast.records import replace

if TYPE_CHECKING:
    import ssl

_BACKLOG = 128
#: Connections of clients that have sent the token: more at once are refused.
_MOST_CONNECTIONS = 1000
#: Other users of this machine can open connections, too. Beyond this number, the oldest without a token is closed for
#: each new one, so that a client with the token always gets in.
_MOST_WITHOUT_TOKEN = 200
#: A connection that has not sent the token after this time is closed.
_TOKEN_TIMEOUT = 10.0
_RETRY_INTERVAL = 2.0

Accept = Callable[[asyncio.Transport, bytes], None]


class TcpListener:
    def __init__(self, paths: Paths, configured: str) -> None:
        self._paths = paths
        self._configured = configured
        self._accept: Accept | None = None
        self._server: Accepting | None = None
        self._lock = asyncio.Lock()
        #: Connections that have sent the token, and those that have not, oldest first.
        self._with_token: set[asyncio.Transport] = set()
        self._without_token: dict[asyncio.Transport, asyncio.TimerHandle] = {}
        #: What clients must send.
        self.token = ""
        #: What lets a client publish events, and do nothing else.
        self.publish_token = ""
        #: Where it listens; None while it is closed.
        self.address: Address | None = None

    async def serve(self, accept: Accept) -> None:
        """Listen where it did before, or is configured to; try again while another program has the port."""
        self._accept = accept
        logged = ""
        while True:
            try:
                return await self._reopen()
            except HoldfastError as refused:
                if refused.message != logged:
                    logged = refused.message
                    note("http-not-open", why=logged)
            await asyncio.sleep(_RETRY_INTERVAL)

    async def _reopen(self) -> None:
        async with self._lock:
            address = _remembered(self._paths.http_listen)
            if address is None:
                address = self._configured
            if address and self._server is None:
                await self._listen(parse_address(address))

    async def open(self, address: Address) -> Address:
        """Listen there, and from now on whenever the daemon runs. The token exists when this returns."""
        async with self._lock:
            if (
                self.address is not None
                and self.address.host == address.host
                and address.port in (0, self.address.port)
            ):
                return self.address
            before, self._server = self._server, None
            try:
                opened = await self._listen(address)
            except HoldfastError:
                self._server = before
                raise
            if before is not None:
                before.close()
            files.replace(self._paths.http_listen, f"{opened}\n".encode())
            return opened

    async def shut(self) -> None:
        """Stop listening, now and after restarts, and close all connections."""
        async with self._lock:
            files.replace(self._paths.http_listen, b"\n")
            self.close()

    async def rotate(self) -> None:
        """Replace the token, and close all connections: they were opened with the old one."""
        async with self._lock:
            self.token = _new_token(self._paths.token)
            self.publish_token = _new_token(self._paths.publish_token)
            for connection in [*self._with_token, *self._without_token]:
                connection.abort()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._server, self.address = None, None
        for connection in [*self._with_token, *self._without_token]:
            connection.abort()

    async def load_tokens(self) -> None:
        """Read the tokens, or make them. They wait for the disk."""
        self.token = await asyncio.to_thread(make_token, self._paths.token)
        self.publish_token = await asyncio.to_thread(make_token, self._paths.publish_token)

    async def _listen(self, address: Address) -> Address:
        await self.load_tokens()
        sock = _bound(address)
        self._server = Accepting(sock, _BACKLOG, lambda: FirstBytes(self))
        self.address = replace(address, port=sock.getsockname()[1])
        note("http-open", at=self.address)
        return self.address

    def connected(self, transport: asyncio.Transport) -> None:
        """Give a new connection some time to send the token."""
        self._without_token = {one: timer for one, timer in self._without_token.items() if not one.is_closing()}
        while len(self._without_token) >= _MOST_WITHOUT_TOKEN:
            oldest = next(iter(self._without_token))
            self._without_token.pop(oldest).cancel()
            oldest.abort()
        self._without_token[transport] = asyncio.get_running_loop().call_later(_TOKEN_TIMEOUT, transport.abort)

    def has_token(self, transport: asyncio.Transport) -> None:
        """The client has sent the token, maybe not for the first time. Raises NotNow when too many have."""
        if transport not in self._without_token:
            return
        self._with_token = {one for one in self._with_token if not one.is_closing()}
        if len(self._with_token) >= _MOST_CONNECTIONS:
            raise NotNow(f"{_MOST_CONNECTIONS} connections are open", next="close some of them")
        self._without_token.pop(transport).cancel()
        self._with_token.add(transport)

    def hand_over(self, transport: asyncio.Transport, first: bytes) -> None:
        if self._accept is not None:
            self._accept(transport, first)


class TlsListener(TcpListener):
    """The listener for other machines: only with TLS, and only where the owner gave it an address and a certificate.

    It has the tokens of the listener on loopback.
    """

    def __init__(self, paths: Paths, loopback: TcpListener) -> None:
        super().__init__(paths, "")
        self._loopback = loopback
        #: Host names of the certificate.
        self.names: frozenset[str] = frozenset()

    @property
    def url(self) -> str | None:
        """How another machine calls it: by a name of the certificate where it listens on every address."""
        if self.address is None:
            return None
        host = self.address.host
        if host in ("0.0.0.0", "::"):
            host = next((name for name in sorted(self.names) if "*" not in name), socket.gethostname())
        return f"https://{Address(host, self.address.port)}"

    async def open_tls(self, address: Address, certificate: str, key: str) -> None:
        """Listen there, and from now on whenever the daemon runs. Raises BadValue for files that are no certificate."""
        async with self._lock:
            context, names = await asyncio.to_thread(_tls, certificate, key)
            before, self._server = self._server, None
            if before is not None:  # the same address with another certificate, perhaps
                before.close()
            await self._listen_tls(address, context, names)
            kept = {"address": str(self.address), "certificate": certificate, "key": key}
            files.replace(self._paths.https_listen, light_json.dumps(kept).encode())

    async def shut(self) -> None:
        async with self._lock:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._paths.https_listen)
            self.close()

    async def _reopen(self) -> None:
        async with self._lock:
            kept = _remembered_tls(self._paths.https_listen)
            if kept is not None and self._server is None:
                address, certificate, key = kept
                await self._listen_tls(address, *await asyncio.to_thread(_tls, certificate, key))

    async def _listen_tls(self, address: Address, context: ssl.SSLContext, names: frozenset[str]) -> None:
        await self._loopback.load_tokens()
        sock = _bound(address)
        self._server = Accepting(sock, _BACKLOG, lambda: FirstBytes(self), context)
        self.address, self.names = replace(address, port=sock.getsockname()[1]), names
        note("https-open", at=self.address)


def _remembered_tls(path: str) -> tuple[Address, str, str] | None:
    """Address, certificate and key that the operation `dashboard` set; None where it set nothing."""
    try:
        with open(path, "rb") as file:
            kept = light_json.load_bytes(file.read())
        return parse_any_address(str(kept["address"])), str(kept["certificate"]), str(kept["key"])
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, BadValue) as broken:
        note("https-listen-unreadable", why=broken)
        return None


def _tls(certificate: str, key: str) -> tuple[ssl.SSLContext, frozenset[str]]:
    """The context of a server, and the host names of its certificate. Raises BadValue."""
    import ssl

    def no_password() -> str:
        raise ValueError("the key has a password")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, no_password)
    except (OSError, ValueError) as refused:  # ssl.SSLError is an OSError
        what = f"cannot use {certificate} and {key}: {getattr(refused, 'strerror', None) or refused}"
        raise BadValue(what, next="give files in PEM form: the certificate with its chain, and its key") from refused
    return context, _names_of(certificate)


def _names_of(certificate: str) -> frozenset[str]:
    """Host names of the certificate; none where this Python cannot read them: the IP address still works then."""
    import ssl

    try:
        decoded = ssl._ssl._test_decode_cert(certificate)  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return frozenset()
    return frozenset(str(value).lower() for kind, value in decoded.get("subjectAltName", ()) if kind == "DNS")


class FirstBytes(asyncio.Protocol):
    """Waits for the first bytes of a connection."""

    def __init__(self, listener: TcpListener) -> None:
        self._listener = listener
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._listener.connected(self._transport)

    def data_received(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._listener.hand_over(self._transport, data)


def make_token(path: str) -> str:
    """The token of the instance, made once, readable by its owner alone."""
    with contextlib.suppress(FileNotFoundError):
        if token := read_token(path):
            return token
        os.unlink(path)
    return _new_token(path)


def _new_token(path: str) -> str:
    token = secrets.token_urlsafe(32)
    files.replace(path, f"{token}\n".encode(), finish=os.fsync)
    return token


def read_token(path: str) -> str:
    """Raises FileNotFoundError where none was made; empty where the file holds no token."""
    with open(path, encoding="ascii", errors="replace") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            os.fchmod(file.fileno(), 0o600)
        token = file.read(1024).strip()
    return token if len(token) >= 16 and token.isascii() and token.isprintable() else ""


def _bound(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # asyncio sets TCP_NODELAY only where the protocol is named.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address.host, address.port))
    except OSError as refused:
        sock.close()
        what = f"cannot listen on {address}: {refused.strerror or refused}"
        raise NotNow(what, next="choose another port: holdfast daemon http --port N") from refused
    return sock


def _remembered(path: str) -> str | None:
    """What the operation `http` set: an address, an empty text for closed, or None where it set nothing."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            text = file.read(256).strip()
    except FileNotFoundError:
        return None
    try:
        return str(parse_address(text)) if text else ""
    except BadValue:
        return None
