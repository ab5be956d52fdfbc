"""Asking an HTTP server whether it answers."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from holdfast.model.addresses import HttpTarget

if TYPE_CHECKING:
    import ssl

_LONGEST_LINE = 8 << 10


async def has_address(host: str) -> bool | None:
    """Whether a host is this machine: an address that can be bound to is one of ours. None when it is unknown."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None  # the request itself will report why
    return any(_is_ours(family, address) for family, _, _, _, address in found)


def _is_ours(family: int, address: tuple[object, ...]) -> bool:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address[0], 0, *address[2:]))
    except OSError:
        return False
    return True


async def trouble(target: HttpTarget) -> str | None:
    """Why a GET is not answered with 2xx or 3xx; None when it is."""
    try:
        reader, writer = await asyncio.open_connection(
            target.host, target.port, ssl=_context() if target.is_secure else None, limit=_LONGEST_LINE
        )
    except (OSError, UnicodeError) as failed:  # a name that is too long is a UnicodeError
        return f"cannot connect: {failed}"
    try:
        writer.write(target.request)
        return _judge(await reader.readline())
    except (OSError, ValueError) as failed:
        return f"no answer: {failed}"
    finally:
        writer.transport.abort()


def _judge(line: bytes) -> str | None:
    words = line.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not (words[1].isdigit() and len(words[1]) == 3):
        return "the answer is not HTTP"
    return None if words[1][:1] in (b"2", b"3") else f"answered {words[1].decode()}"


def _context() -> ssl.SSLContext:
    """Accepts any certificate: no secret is sent, and servers in development have self-signed ones."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
