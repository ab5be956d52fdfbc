"""The daemon's connection to the keeper, at the instant at which it breaks."""

from __future__ import annotations

import asyncio
import os
import select
import socket
from typing import Any

import pytest

from holdfast.places.keeper_link import FdStore, KeeperLink
from holdfast_keeper import protocol
from holdfast_keeper.connections import send_datagram


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
        await asyncio.wait_for(greeted.get(), 60)
        asked: list[asyncio.Future[dict[str, Any]]] = []
        assert link._connection is not None
        connection, lost = link._connection, link._connection.connection_lost

        def ask_first(why: Exception | None) -> None:
            """The request is made after the loop has closed the connection, and before the link knows of it."""
            asyncio.get_running_loop().call_soon(lambda: asked.append(link.begin("usage")))
            lost(why)

        connection.connection_lost = ask_first  # type: ignore[method-assign]
        keepers.peers[-1].close()
        await asyncio.wait_for(greeted.get(), 60)
        (request,) = await asyncio.wait_for(keepers.requests(1), 60)
        keepers.peers[-1].send(protocol.encode({"rid": request["rid"], "ok": {"log_bytes": 7}}))
        assert await asyncio.wait_for(asked[0], 60) == {"log_bytes": 7}
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        keepers.peers[-1].close()

    with asyncio.Runner(loop_factory=pytest.importorskip(loops).new_event_loop) as runner:
        runner.run(scene())


def test_what_a_keeper_deposited_before_it_was_killed_is_taken_though_it_had_not_read_all() -> None:
    """The kernel reports the reset first, and the deposits are behind it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    with open(os.devnull) as file:
        for process_id in ("proc_00000000000a", "proc_00000000000b"):
            send_datagram(theirs, {"op": "hold", "id": process_id, "names": ["outr"], "pid": 7}, [file.fileno()])

    async def connect() -> socket.socket:
        return ours

    async def scene() -> None:
        store = FdStore(connect, lambda *_, **__: None)
        ending = asyncio.ensure_future(asyncio.to_thread(end_without_reading))
        assert await store._serve_connection()
        await ending
        assert sorted(store.held) == ["proc_00000000000a", "proc_00000000000b"]
        for process_id in list(store.held):
            store.drop(process_id, None)

    def end_without_reading() -> None:
        select.select([theirs], [], [])
        theirs.close()

    asyncio.run(scene())
