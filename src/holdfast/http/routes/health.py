"""/livez, /readyz and /metrics."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Iterable

from holdfast.daemon.room import Room
from holdfast.errors import Unreachable
from holdfast.http.answers import Answer
from holdfast.http.problems import Refusal
from holdfast.http.request import Request
from holdfast.http.table import Reply, Route
from holdfast.version import VERSION

_TEXT = "text/plain; charset=utf-8"
METRICS = "text/plain; version=0.0.4; charset=utf-8"
_TICK = 0.01
_LEAST_ROOM = 1 << 20


async def livez(request: Request) -> Answer:
    return Answer(200, b"ok\n", _TEXT)


async def readyz(request: Request) -> Answer:
    """Ready is a daemon that can start something now."""
    if not request.room.keeper.is_reachable:
        raise Unreachable("the keeper does not answer", next="holdfast doctor")
    if not await request.room.read(has_room, request.room.paths.home):
        raise Refusal(503, "disk_full", "there is no room on the disk", next="free some: holdfast rm")
    return Answer(200, b"ok\n", _TEXT)


def has_room(home: str) -> bool:
    """Whether the disk has room for what a start writes. One that does not tell its size is not asked twice."""
    disk = os.statvfs(home)
    return disk.f_blocks == 0 or disk.f_bavail * disk.f_frsize >= _LEAST_ROOM


async def metrics(request: Request) -> Answer:
    lag = await _lag()
    return Answer(200, "".join(await _lines(request.room, lag)).encode(), METRICS)


async def _lines(room: Room, lag: float) -> list[str]:
    processes = room.registry.shown()
    measured = await room.place.sizes([process for process in processes if not process.output_closed])
    output = 0
    statuses: Counter[str] = Counter(running=0, ended=0)
    for process in processes:
        streams = measured[process.id].streams if process.id in measured else process.streams
        output += sum(stream.end for stream in streams.values())
        statuses["ended" if process.has_ended else "running"] += 1
    ends = room.registry.ends
    return [
        *_metric("processes", "gauge", "Processes that are known, by status.", _by("status", statuses)),
        *_metric("starts_total", "counter", "Commands started since the daemon began.", [("", room.registry.starts)]),
        *_metric("ends_total", "counter", "Ends seen since the daemon began, by reason.", _by("reason", ends)),
        *_metric("output_bytes", "gauge", "Bytes written by the processes that are known.", [("", output)]),
        *_metric("events_total", "counter", "Events that were ever kept.", [("", room.stream.newest)]),
        *_metric("bridges", "gauge", "Bridges that are connected.", [("", room.relays.connected)]),
        *_metric("bridge_events_total", "counter", "Events that came over bridges.", [("", room.relays.taken)]),
        *_metric(
            "bridge_ignored_total", "counter", "Frames of bridges that were no events.", [("", room.relays.ignored)]
        ),
        *_metric("keeper_reachable", "gauge", "Whether the keeper answers.", [("", int(room.keeper.is_reachable))]),
        *_metric("loop_lag_seconds", "gauge", "How late the daemon's loop was just now.", [("", lag)]),
        *_metric("uptime_seconds", "gauge", "How long the daemon has run.", [("", time.time() - room.started_at)]),
        *_metric("build_info", "gauge", "The release.", [(f'{{version="{VERSION}"}}', 1)]),
    ]


def _metric(name: str, kind: str, about: str, values: Iterable[tuple[str, float]]) -> list[str]:
    head = [f"# HELP holdfast_{name} {about}\n", f"# TYPE holdfast_{name} {kind}\n"]
    return head + [f"holdfast_{name}{labels} {value}\n" for labels, value in values]


def _by(label: str, counts: Counter[str]) -> list[tuple[str, float]]:
    return [(f'{{{label}="{name}"}}', count) for name, count in sorted(counts.items())]


async def _lag() -> float:
    """Measured when asked for: a daemon that nobody asks need not wake up for it."""
    before = time.monotonic()
    await asyncio.sleep(_TICK)
    return max(0.0, time.monotonic() - before - _TICK)


ROUTES = [
    Route(
        "GET",
        "/livez",
        "isAlive",
        "Whether the daemon runs. No token needed",
        {200: Reply("It does", {_TEXT: {"type": "string"}})},
        livez,
    ),
    Route(
        "GET",
        "/readyz",
        "isReady",
        "Whether it can start something",
        {200: Reply("It can", {_TEXT: {"type": "string"}})},
        readyz,
    ),
    Route(
        "GET",
        "/metrics",
        "getMetrics",
        "Figures for Prometheus",
        {200: Reply("The figures", {METRICS: {"type": "string"}})},
        metrics,
    ),
]
