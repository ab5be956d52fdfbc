"""The token is sent to a daemon of the same user only: any user can listen on a port that the daemon left."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.events.address import find_address

NOBODY = 65534


class ForeignListener:
    """Of another user, if that can be; else of this one, which is then taken for another."""

    def __init__(self, url: str, received: bytearray) -> None:
        self.url = url
        self.received = received


@pytest.fixture(params=["127.0.0.1", "::1", "::"])
def foreign(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ForeignListener]:
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        listener = socket.create_server((request.param, 0), family=family, dualstack_ipv6=request.param == "::")
    finally:
        os.seteuid(before)
    if before != 0:
        monkeypatch.setattr("holdfast.peers.os.geteuid", lambda: NOBODY)
    received = bytearray()
    threading.Thread(target=collect, args=(listener, received), daemon=True).start()
    host = {"::1": "[::1]", "::": "127.0.0.1"}.get(request.param, request.param)
    yield ForeignListener(f"http://{host}:{listener.getsockname()[1]}", received)
    listener.close()


def collect(listener: socket.socket, received: bytearray) -> None:
    """Until the client hangs up, or the request is complete."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            while b"\r\n\r\n" not in received and (data := connection.recv(1 << 16)):
                received += data


def test_a_foreign_listener_does_not_get_the_token(home: Path, foreign: ForeignListener) -> None:
    with pytest.raises(holdfast.Denied, match="another user"):
        holdfast.connect(url=foreign.url, token="the-token-of-the-instance")

    async def use() -> None:
        with pytest.raises(holdfast.Denied, match="another user"):
            async with holdfast.aconnect(url=foreign.url, token="the-token-of-the-instance") as client:
                await client.status()

    asyncio.run(use())
    assert not foreign.received


def test_nor_does_it_from_a_bridge(home: Path, foreign: ForeignListener) -> None:
    with pytest.raises(OSError, match="another user"):
        find_address(foreign.url, "the-token-of-the-instance").connect()
    assert not foreign.received


def test_a_new_token_replaces_the_old_one(home: Path) -> None:
    with holdfast.connect() as client:
        url = client.http("open")["url"]
        old = (home / "token").read_text().strip()
        with holdfast.connect(url=url, token=old) as remote:
            assert client.http("rotate")["url"] == url
            new = (home / "token").read_text().strip()
            assert new != old and (home / "token").stat().st_mode & 0o777 == 0o600
            with pytest.raises(holdfast.Denied):
                remote.status()
        with pytest.raises(holdfast.Denied):
            holdfast.connect(url=url, token=old)
        with holdfast.connect(url=url) as remote:
            assert remote.status()["home"] == str(home)
