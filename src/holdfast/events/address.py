"""The address a bridge connects to: the daemon's socket, or a URL with a token."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from holdfast.model.addresses import is_loopback
from holdfast.paths import find_paths
from holdfast.peers import foreign_listener

URL = "HOLDFAST_BUS_URL"
TOKEN = "HOLDFAST_BUS_TOKEN"

_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_CONNECT = 10.0


class BusAddress(NamedTuple):
    base: str
    """The beginning of every URL there."""
    path: str | None
    """Of the socket; None for TCP."""
    host: str
    port: int
    token: str | None

    def connect(self) -> socket.socket:
        """Raises OSError."""
        if self.path is not None:
            return _connect_unix(self.path)
        sock = socket.create_connection((self.host, self.port), timeout=_CONNECT)
        sock.settimeout(None)
        if self.token is not None and is_loopback(sock.getpeername()[0]) and foreign_listener(sock) is not None:
            sock.close()
            raise PermissionError(f"another user listens at {self.host}:{self.port}: the token was not sent")
        return sock


def find_address(url: str | None, token: str | None, environ: Mapping[str, str] | None = None) -> BusAddress:
    """`url` is http(s):// or ws(s)://, or the path of a socket; by default the environment decides.

    Without HOLDFAST_BUS_URL it is the instance that HOLDFAST_HOME names. Raises ValueError.
    """
    env = os.environ if environ is None else environ
    url = url or env.get(URL) or find_paths(env).socket
    token = token or env.get(TOKEN)
    if url.startswith(("/", "unix:")):
        return BusAddress("ws://localhost", url.removeprefix("unix:").removeprefix("//"), "", 0, token)
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError(f"the URL of a bus is http://HOST:PORT or the path of the daemon's socket, not {url!r}")
    scheme = _SCHEMES[parts.scheme]
    port = parts.port or (443 if scheme == "wss" else 80)
    if token is None and is_loopback(parts.hostname):
        token = _token_of(find_paths(env).token)
    return BusAddress(f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}", None, parts.hostname, port, token)


def _token_of(path: str) -> str | None:
    """That of the instance on this machine, which no other machine needs to know."""
    try:
        with open(path) as file:
            return file.read().strip() or None
    except OSError:
        return None


def _connect_unix(path: str) -> socket.socket:
    """Through a descriptor, because the path of a socket has 107 bytes at most."""
    directory = os.open(os.path.dirname(path) or "/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.connect(f"/proc/self/fd/{directory}/{os.path.basename(path)}")
    except BaseException:
        sock.close()
        raise
    finally:
        os.close(directory)
    return sock
