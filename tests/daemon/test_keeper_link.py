"""The daemon's connection to the keeper, at the instant at which it breaks."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from holdfast.places.keeper_link import KeeperLink
from holdfast_keeper import protocol


class Keepers:
    """Accepts a connection and says hello, as often as it is asked to."""

    def __init__(self) -> None:
        self.peers: list[socket.socket] = []

    async def connect(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        self.peers.append(theirs)
        theirs.send(protocol.encode({"rid": 0, "ok": {"live": []}}))
        return ours

    async def requests(self, count: int) -> list[dict[str, Any]]:
        """The next requests on the newest connection, without the hello."""
        decoder, found = protocol.Decoder(), list[dict[str, Any]]()
        while len(found) < count:
            data = await asyncio.get_running_loop().sock_recv(self.peers[-1], 65536)
            found += [message for message in decoder.feed(data) if message["op"] != "hello"]
        return found


@pytest.mark.parametrize("loops", ["asyncio", "uvloop"])
def test_a_request_on_a_connection_that_just_broke_goes_to_the_next_keeper(loops: str) -> None:
    async def scene() -> None:
        keepers = Keepers()
        link = KeeperLink(keepers.connect, {}, lambda *_, **__: None)
        greeted: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        running = asyncio.ensure_future(link.run(greeted.put_nowait, lambda _: None))
        await asyncio.wait_for(greeted.get(), 5)
        asked: list[asyncio.Future[dict[str, Any]]] = []
        assert link._connection is not None
        connection, lost = link._connection, link._connection.connection_lost

        def ask_first(why: Exception | None) -> None:
            """The request is made after the loop has closed the connection, and before the link knows of it."""
            asyncio.get_running_loop().call_soon(lambda: asked.append(link.begin("usage")))
            lost(why)

        connection.connection_lost = ask_first  # type: ignore[method-assign]
        keepers.peers[-1].close()
        await asyncio.wait_for(greeted.get(), 5)
        (request,) = await asyncio.wait_for(keepers.requests(1), 5)
        keepers.peers[-1].send(protocol.encode({"rid": request["rid"], "ok": {"log_bytes": 7}}))
        assert await asyncio.wait_for(asked[0], 5) == {"log_bytes": 7}
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        keepers.peers[-1].close()

    with asyncio.Runner(loop_factory=pytest.importorskip(loops).new_event_loop) as runner:
        runner.run(scene())
