"""top: what the running processes use, the largest first."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from typing import Any

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.model.process import HeldProcess
from holdfast.model.usage import Track
from holdfast.ops.processes import Top

_KEYS: dict[str, Callable[[HeldProcess, Track], float]] = {
    "cpu": lambda process, track: -(track.cpu_percent or 0.0),
    "memory": lambda process, track: -(track.rss_bytes or 0),
    "started": lambda process, track: 0.0,
}


async def handle(context: DaemonContext, call: Call, ask: Top) -> Message:
    session, task = context.current_name(ask.session), ask.task
    key = _KEYS[ask.sort]
    chosen = [
        process
        for process in context.registry.running()
        if (session is None or process.meta.session == session) and (task is None or process.meta.task == task)
    ]
    await context.place.usage.rate(chosen)
    rows = [(process, context.place.usage.known(process.id) or Track()) for process in chosen]
    rows.sort(key=lambda row: (key(*row), row[0].meta.requested_at))
    now = time.monotonic()
    status = "running" if context.keeper.is_reachable else "unreachable"
    return {
        "processes": [_row(*row, status, now, ask.history) for row in islice(rows, ask.limit or None)],
        "total": len(rows),
        "cpu_percent": sum(track.cpu_percent or 0.0 for _, track in rows),
        "rss_bytes": sum(track.rss_bytes or 0 for _, track in rows),
    }


def _row(process: HeldProcess, track: Track, status: str, now: float, samples: int) -> Message:
    meta = process.meta
    return {
        "id": meta.id,
        "name": meta.name,
        "status": status,
        "session": meta.session,
        "task": meta.task,
        "pid": process.pid,
        "started_at": process.started_at,
        "command": meta.command,
        "limits": meta.limits or None,
        "cpu_percent": track.cpu_percent,
        "cpu_seconds": track.cpu_seconds,
        "rss_bytes": track.rss_bytes,
        "peak_rss_bytes": track.peak_rss_bytes,
        "ports": track.ports,
        "history": _history(track, now, samples),
    }


def _history(track: Track, now: float, samples: int) -> dict[str, list[Any]]:
    kept = list(track.history)[-samples:] if samples else []
    return {
        "ago": [round(now - sample.at, 1) for sample in kept],
        "cpu_percent": [round(sample.cpu_percent, 1) for sample in kept],
        "rss_bytes": [sample.rss_bytes for sample in kept],
    }
