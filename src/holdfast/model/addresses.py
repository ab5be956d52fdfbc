"""Addresses: to listen on, without TLS on loopback only, and URLs that are asked whether a process is ready."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.errors import BadValue
from holdfast.records import Struct

_HINT = "write it like http://localhost:8080/health"
_NEXT = "127.0.0.1:PORT, [::1]:PORT or localhost:PORT"


class Address(Struct, frozen=True):
    """An IP address and a port; 0 lets the kernel choose a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self}"


def parse_address(text: str) -> Address:
    """Raises BadValue for an invalid address and for one that is not loopback."""
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or len(port) > 5 or int(port) > 65535:
        raise BadValue(f"{text[:80]!r} is not an address to listen on", next=_NEXT)
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not is_loopback(host):
        raise BadValue(f"{host[:80]!r} is not a loopback address, and holdfast listens on no other", next=_NEXT)
    return Address("127.0.0.1" if host.lower() == "localhost" else host, int(port))


def parse_any_address(text: str) -> Address:
    """An address of this machine with a port, also beyond loopback. Raises BadValue."""
    import ipaddress

    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or len(port) > 5 or int(port) > 65535:
        raise BadValue(f"{text[:80]!r} is not an address to listen on", next="IP:PORT, such as 0.0.0.0:7443")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    try:
        return Address(str(ipaddress.ip_address("127.0.0.1" if host.lower() == "localhost" else host)), int(port))
    except ValueError:
        raise BadValue(f"{host[:80]!r} is not an IP address", next="IP:PORT, such as 0.0.0.0:7443") from None


def is_loopback(host: str) -> bool:
    """Whether a host is this machine without a lookup: other names may resolve to any address."""
    if host.lower() == "localhost" or host == "::1":
        return True
    parts = host.split(".")
    return (
        len(parts) == 4
        and parts[0] == "127"
        and all(part.isascii() and part.isdigit() and len(part) <= 3 and int(part) < 256 for part in parts)
    )


class HttpTarget(NamedTuple):
    """Where a URL leads, and the request that is sent there."""

    host: str
    port: int
    is_secure: bool
    request: bytes


def parse_url(url: str, key: str) -> HttpTarget:
    """Where to connect to, and the request. Raises BadValue unless it is an http or https URL."""
    if not (url.isascii() and url.isprintable()) or " " in url:
        raise BadValue(f"{key} has characters that no URL has", next="write them percent-encoded")
    try:
        from urllib.parse import urlsplit

        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as broken:
        raise BadValue(f"{key} is no URL: {broken}", next=_HINT) from None
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise BadValue(f"{key} must be an http or https URL, not {url[:80]!r}", next=_HINT)
    if "@" in parts.netloc:
        raise BadValue(f"{key} must not hold a password or a user", next="let the server answer one URL without")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    is_secure = parts.scheme == "https"
    return HttpTarget(host, port or (443 if is_secure else 80), is_secure, _request(parts.netloc, path))


def _request(host: str, path: str) -> bytes:
    fields = (f"Host: {host}", "User-Agent: holdfast", "Accept: */*", "Connection: close")
    return "\r\n".join((f"GET {path} HTTP/1.1", *fields, "", "")).encode()
