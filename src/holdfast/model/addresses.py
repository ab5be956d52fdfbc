"""Addresses to listen on: loopback only."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.errors import BadValue

_NEXT = "127.0.0.1:PORT, [::1]:PORT or localhost:PORT"


class Address(NamedTuple):
    """A loopback address and a port; 0 lets the kernel choose a free one."""

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
