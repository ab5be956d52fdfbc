"""Ready when a URL answers with 2xx or 3xx. On this machine, only an answer of the process's own tree counts."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.probes.port import PortProbe, Report
from holdfast.errors import BadValue
from holdfast.model import readiness
from holdfast.model.process import HeldProcess

if TYPE_CHECKING:
    import ssl

#: For one answer: some servers build everything when they are asked first.
_ANSWER_TIMEOUT = 10.0
#: After this time without an answer the reason is shown.
_REPORT_AFTER = 1.0
_LONGEST_LINE = 8 << 10
_HINT = "write it like http://localhost:8080/health"


class Target(NamedTuple):
    host: str
    port: int
    is_secure: bool
    request: bytes


def parse_url(url: str, key: str) -> Target:
    """Where to connect to, and the request. Raises BadValue unless it is an http or https URL."""
    if not (url.isascii() and url.isprintable()) or " " in url:
        raise BadValue(f"{key} has characters that no URL has", next="write them percent-encoded")
    try:
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
    return Target(host, port or (443 if is_secure else 80), is_secure, _request(parts.netloc, path))


def _request(host: str, path: str) -> bytes:
    fields = (f"Host: {host}", "User-Agent: holdfast", "Accept: */*", "Connection: close")
    return "\r\n".join((f"GET {path} HTTP/1.1", *fields, "", "")).encode()


async def until_answered(context: DaemonContext, process: HeldProcess, url: str, report: Report) -> None:
    target = parse_url(url, "ready_http")
    here = _Here(target, PortProbe(context, process, target.port))
    attempt = 0
    while True:
        slow = asyncio.get_running_loop().call_later(_REPORT_AFTER, report, f"no answer yet from port {target.port}")
        try:
            trouble = await _attempt(here, target)
        finally:
            slow.cancel()
        if trouble is None:
            return
        report(trouble)
        await asyncio.sleep(readiness.pause(attempt))
        attempt += 1


async def _attempt(here: _Here, target: Target) -> str | None:
    """None when it is ready, else why it is not."""
    try:
        async with asyncio.timeout(_ANSWER_TIMEOUT):
            return await here.trouble() or await _ask(target)
    except TimeoutError:
        return f"no answer within {_ANSWER_TIMEOUT:g} s"


class _Here:
    """Whether the URL is on this machine, and then whether the process that would answer belongs to the tree."""

    def __init__(self, target: Target, probe: PortProbe) -> None:
        self._target = target
        self._probe = probe
        self._is_here: bool | None = None

    async def trouble(self) -> str | None:
        """Why a request is useless now; None when it is not."""
        if self._is_here is None:
            self._is_here = await _is_here(self._target)
        if not self._is_here:
            return None
        return await self._probe.trouble(must_be_alone=True)


async def _is_here(target: Target) -> bool | None:
    """Whether the host is this machine: an address that can be bound to is one of ours. None when it is unknown."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
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


async def _ask(target: Target) -> str | None:
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
