"""/livez, /readyz, /metrics, and the OpenAPI document."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Iterable

from holdfast.daemon.core.context import DaemonContext
from holdfast.errors import Denied, Unreachable
from holdfast.http.request import HttpRequest
from holdfast.http.responses import HttpRefusal, Response
from holdfast.http.routing import API, JSON, Route, Success
from holdfast.version import VERSION

_TEXT = "text/plain; charset=utf-8"
METRICS = "text/plain; version=0.0.4; charset=utf-8"
_TICK = 0.01
_LEAST_SPACE = 1 << 20


async def livez(request: HttpRequest) -> Response:
    return Response(200, b"ok\n", _TEXT)


async def readyz(request: HttpRequest) -> Response:
    """Whether the daemon can start a process now."""
    if not request.context.keeper.is_reachable:
        raise Unreachable("the keeper does not answer", next="holdfast doctor")
    if not await request.context.read(has_space, request.context.paths.home):
        raise HttpRefusal(503, "disk_full", "the disk is full", next="free some space: holdfast rm")
    return Response(200, b"ok\n", _TEXT)


def has_space(home: str) -> bool:
    """Whether the disk has space for what a start writes. A file system without a size counts as one that has."""
    disk = os.statvfs(home)
    return disk.f_blocks == 0 or disk.f_bavail * disk.f_frsize >= _LEAST_SPACE


async def metrics(request: HttpRequest) -> Response:
    if request.call().is_strict:
        raise Denied("the figures of the instance are not for a connection that is bound to its session")
    lag = await _lag()
    return Response(200, "".join(await _lines(request.context, lag)).encode(), METRICS)


async def _lines(context: DaemonContext, lag: float) -> list[str]:
    processes = context.registry.shown()
    measured = await context.sizes([process for process in processes if not process.output_closed])
    output = 0
    statuses: Counter[str] = Counter(running=0, waiting=0, ended=0)
    for process in processes:
        streams = measured[process.id].streams if process.id in measured else process.streams
        output += sum(stream.end for stream in streams.values())
        statuses["ended" if process.has_ended else "waiting" if process.is_queued else "running"] += 1
    ends = context.registry.ends
    return [
        *_metric("processes", "gauge", "Processes that are known, by status.", _by("status", statuses)),
        *_metric(
            "starts_total", "counter", "Commands started since the daemon began.", [("", context.registry.starts)]
        ),
        *_metric("ends_total", "counter", "Ends seen since the daemon began, by reason.", _by("reason", ends)),
        *_metric("output_bytes", "gauge", "Bytes written by the processes that are known.", [("", output)]),
        *_metric("events_total", "counter", "Events that were ever kept.", [("", context.stream.newest)]),
        *_metric("bridges", "gauge", "Bridges that are connected.", [("", context.bridges.connected)]),
        *_metric("bridge_events_total", "counter", "Events that came over bridges.", [("", context.bridges.taken)]),
        *_metric(
            "bridge_ignored_total", "counter", "Frames of bridges that were no events.", [("", context.bridges.ignored)]
        ),
        *_metric("keeper_reachable", "gauge", "Whether the keeper answers.", [("", int(context.keeper.is_reachable))]),
        *_metric("loop_lag_seconds", "gauge", "How late the daemon's loop was just now.", [("", lag)]),
        *_metric("uptime_seconds", "gauge", "How long the daemon has run.", [("", time.time() - context.started_at)]),
        *_metric("build_info", "gauge", "The release.", [(f'{{version="{VERSION}"}}', 1)]),
    ]


def _metric(name: str, kind: str, about: str, values: Iterable[tuple[str, float]]) -> list[str]:
    head = [f"# HELP holdfast_{name} {about}\n", f"# TYPE holdfast_{name} {kind}\n"]
    return head + [f"holdfast_{name}{labels} {value}\n" for labels, value in values]


def _by(label: str, counts: Counter[str]) -> list[tuple[str, float]]:
    return [(f'{{{label}="{name}"}}', count) for name, count in sorted(counts.items())]


async def _lag() -> float:
    """Measured on request: an idle daemon need not wake up for it."""
    before = time.monotonic()
    await asyncio.sleep(_TICK)
    return max(0.0, time.monotonic() - before - _TICK)


async def openapi(request: HttpRequest) -> Response:
    from holdfast.http.openapi import document_bytes

    return Response(200, document_bytes(), JSON)


ROUTES = [
    Route(
        "GET",
        f"{API}/openapi.json",
        "getDescription",
        "This description",
        {200: Success("OpenAPI 3.1", {JSON: {"type": "object"}})},
        openapi,
    ),
    Route(
        "GET",
        "/livez",
        "isAlive",
        "Whether the daemon runs. No token needed",
        {200: Success("It runs", {_TEXT: {"type": "string"}})},
        livez,
    ),
    Route(
        "GET",
        "/readyz",
        "isReady",
        "Whether it can start a process",
        {200: Success("It is ready", {_TEXT: {"type": "string"}})},
        readyz,
    ),
    Route(
        "GET",
        "/metrics",
        "getMetrics",
        "Figures for Prometheus",
        {200: Success("The figures", {METRICS: {"type": "string"}})},
        metrics,
    ),
]
