"""From an end to its owner's inbox: how soon one who waits there wakes, and many ends over many sessions."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import holdfast
from bench.figure import Figure, ratio
from bench.instance import Instance
from bench.measures.exit import DELAY_MS, known_ours, known_pidfd, since
from bench.run import Run
from bench.series import Series, interleave, quantile

_STARTERS = 8
_LONGEST = 300.0


def measure(run: Run) -> list[Figure]:
    return [*_wakes(run), *_many(run)]


def _wakes(run: Run) -> list[Figure]:
    with Instance(run.directory) as instance, tempfile.TemporaryDirectory(dir=run.directory) as directory:
        stamp = Path(directory) / "left"
        argv = [*run.child, "leave", str(stamp), str(DELAY_MS)]
        taken = interleave(
            run.scale.rounds,
            {
                "inbox": lambda: since(stamp, lambda: _known_by_inbox(instance, argv)),
                "wait": lambda: since(stamp, lambda: known_ours(instance, argv)),
                "pidfd": lambda: since(stamp, lambda: known_pidfd(argv)),
            },
        )
    inbox, waited, floor = taken.values()
    p99 = quantile(inbox.values, 0.99)
    series = (_in_ms(inbox), _in_ms(waited))
    return [
        Figure("exit until the inbox wakes, p50", inbox.p50 * 1000, "ms", 5.0, 2.5, series),
        Figure("exit until the inbox wakes, p99", p99 * 1000, "ms"),
        ratio("exit until the inbox wakes, to pidfd + epoll", inbox, floor, 12.0, 6.0),
    ]


def _in_ms(series: Series) -> Series:
    return Series(series.name, tuple(value * 1000 for value in series.values))


def _known_by_inbox(instance: Instance, argv: list[str]) -> int:
    """When a client that waits at the inbox has the notification."""
    process = instance.client.run(argv)
    (notice,) = instance.client.inbox(wait=60)
    known_at = time.monotonic_ns()
    assert notice.process == process.id
    instance.client.ack(notice)
    instance.client.remove(process.id)
    return known_at


def _many(run: Run) -> list[Figure]:
    count, sessions = run.scale.notices, run.scale.notice_sessions
    with Instance(run.directory) as instance:
        took, faults, lags = asyncio.run(_crowd(instance.home, count, sessions))
    name = f"{count:,} ends over {sessions} sessions"
    lag = _in_ms(Series("notified", tuple(lags)))
    allowed = 30.0 * count / 10_000
    return [
        Figure(f"{name}: lost, doubled or misrouted", faults, "", 0, 0),
        Figure(f"{name}: until all are delivered and acknowledged", took, "s", allowed, allowed / 2),
        Figure(f"{name}: exit until its owner has the notice, p50", lag.p50, "ms", None, None, (lag,)),
    ]


class Received:
    """The notifications that every session received, their delay, and whether all have come."""

    def __init__(self, names: list[str], count: int) -> None:
        self.by: dict[str, Counter[str]] = {name: Counter() for name in names}
        self.lags: list[float] = []
        self.is_all = asyncio.Event()
        self._count = count

    def note(self, session: str, notices: list[holdfast.Notification]) -> None:
        now = time.time()
        for notice in notices:
            self.by[session][str(notice.process)] += 1
            self.lags.append(now - notice.data["ended_at"])
        if len(self.lags) >= self._count:
            self.is_all.set()

    def faults(self, owners: dict[str, str]) -> int:
        """How many were not delivered exactly once to their owner."""
        right: dict[str, Counter[str]] = {name: Counter() for name in self.by}
        for process, owner in owners.items():
            right[owner][process] += 1
        return sum(
            (received - right[name]).total() + (right[name] - received).total() for name, received in self.by.items()
        )


async def _crowd(home: str, count: int, sessions: int) -> tuple[float, int, list[float]]:
    """Seconds for all, how many went wrong, and the delay of each."""
    names = [f"crowd-{number}" for number in range(sessions)]
    received = Received(names, count)
    begun = time.monotonic()
    listeners = [asyncio.create_task(_listen(home, name, received)) for name in names]
    shares = [range(first, count, _STARTERS) for first in range(_STARTERS)]
    started = await asyncio.gather(*(_start(home, names, share) for share in shares))
    owners = {process: owner for some in started for process, owner in some.items()}
    with suppress(TimeoutError):
        async with asyncio.timeout(_LONGEST):
            await received.is_all.wait()
    took = time.monotonic() - begun
    for listener in listeners:
        listener.cancel()
    await asyncio.gather(*listeners, return_exceptions=True)
    return took, received.faults(owners), received.lags


async def _start(home: str, names: list[str], numbers: range) -> dict[str, str]:
    owners: dict[str, str] = {}
    async with holdfast.aconnect(home=home) as client:
        for number in numbers:
            owner = names[number % len(names)]
            owners[(await client.run(["true"], session=owner)).id] = owner
    return owners


async def _listen(home: str, session: str, received: Received) -> None:
    async with holdfast.aconnect(session, home=home) as client:
        while True:
            if notices := await client.inbox(wait=60):
                received.note(session, notices)
                await client.ack(*notices)
