"""Many who follow: 100 WebSockets, 1,000 events a second. What the daemon uses for it, and whether anything is lost."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import time
from collections.abc import Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from bench.figure import Figure
from bench.instance import Instance
from bench.procfs import cpu_seconds
from bench.run import Run
from bench.series import Series
from holdfast.client import launch
from holdfast.paths import Paths

RATE = 1000
#: Events are published in small groups, so that it is the daemon that is measured and not the publisher.
_TICK = 0.01


def measure(run: Run) -> list[Figure]:
    followers, seconds = run.scale.followers, run.scale.follow_seconds
    with Instance(run.directory) as instance:
        pid = instance.pids[0]
        paths = instance.client.paths
        used, lost, lags = asyncio.run(_follow(paths, pid, followers, seconds))
    name = f"{followers} WebSocket followers at {RATE:,} events/s"
    lag = Series("lag", tuple(lags))
    return [
        Figure(f"{name}: events lost", lost, "", 0, 0),
        Figure(f"{name}: processor of the daemon", used, "cores", 1.0, 0.5),
        Figure(f"{name}: from publishing to hearing, p50", lag.p50 * 1000, "ms", None, None, (lag,)),
    ]


async def _follow(paths: Paths, pid: int, followers: int, seconds: float) -> tuple[float, int, list[float]]:
    """Cores used, events lost over all followers, and the delay of one of them."""
    count = int(seconds * RATE)
    lags: list[float] = []
    ready = [asyncio.Event() for _ in range(followers)]
    tasks = [asyncio.create_task(_hear(paths, count, ready[at], None if at else lags)) for at in range(followers)]
    for one, task in zip(ready, tasks, strict=True):
        waiting = asyncio.ensure_future(one.wait())
        await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if task.done():
            task.result()  # it could not even begin
    before, begun = cpu_seconds([pid]), time.monotonic()
    await publish(paths, count, "bench.x", _envelope)
    received = await asyncio.gather(*tasks)
    used = (cpu_seconds([pid]) - before) / (time.monotonic() - begun)
    return used, sum(count - one for one in received), lags


async def publish(
    paths: Paths,
    count: int | None,
    topic: str,
    envelope: Callable[[int], dict[str, Any]],
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """So many events, or until it is over, at the rate."""
    begun, size = time.monotonic(), int(RATE * _TICK)
    async with connect("ws://localhost/api/pub", sock=_open(paths), compression=None) as pub:
        for first in itertools.count(0, size) if count is None else range(0, count, size):
            group = range(first, first + size)
            frames = [{"_bus_relay": True, "topic": topic, "envelope": envelope(k)} for k in group]
            await pub.send(json.dumps(frames))
            await asyncio.sleep(max(0.0, begun + (group.stop / RATE) - time.monotonic()))
            if is_over():
                return


def _open(paths: Paths) -> socket.socket:
    """A connection to the daemon, however long the path of its socket is."""
    found = launch.find(paths)
    assert found is not None
    sock = socket.socket(fileno=found.detach())
    sock.setblocking(False)
    return sock


def _envelope(k: int) -> dict[str, Any]:
    return {"k": k, "ts": time.time(), "text": "x" * 60}


async def _hear(paths: Paths, count: int, ready: asyncio.Event, lags: list[float] | None) -> int:
    """How many came, each once and in order."""
    async with connect("ws://localhost/api/v1/events?pattern=bench.*", sock=_open(paths), compression=None) as ws:
        await ws.recv()
        ready.set()
        received = 0
        while received < count:
            for event in await _next(ws):
                if event["k"] != received:
                    return received
                received += 1
                if lags is not None:
                    lags.append(time.time() - event["ts"])
    return received


async def _next(ws: ClientConnection) -> list[dict[str, Any]]:
    async with asyncio.timeout(30):
        said: list[dict[str, Any]] = json.loads(await ws.recv())
    return said
