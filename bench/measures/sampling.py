"""What it costs to look at many idle processes, again and again, as `holdfast top` does."""

from __future__ import annotations

import time

from bench.figure import Figure
from bench.instance import Instance
from bench.measures.held import SETTLE, absolute
from bench.procfs import cpu_seconds
from bench.run import Run

#: As `holdfast top` asks: every two seconds, for as many rows as a terminal has.
PAUSE = 2.0
ROWS = 50
BLOCKS = 12


def measure(run: Run) -> list[Figure]:
    with Instance(run.directory) as instance:
        for _ in range(run.scale.held):
            instance.client.run(["sleep", "3600"], if_running="allow")
        time.sleep(SETTLE)
        looked_at = [share(instance, run.scale.idle_seconds) for _ in range(run.scale.held_rounds)]
    return [absolute(f"CPU while {run.scale.held:,} held are looked at, of a core", looked_at, "%", 2.0, 1.0)]


def share(instance: Instance, seconds: float) -> float:
    """Percent of a core that all of ours take while a `top` is open; the first update is not counted."""
    pids = instance.family
    look(instance)
    spent, begun = cpu_seconds(pids), time.monotonic()
    while time.monotonic() - begun < seconds:
        time.sleep(min(PAUSE, seconds))
        look(instance)
    return 100.0 * (cpu_seconds(pids) - spent) / (time.monotonic() - begun)


def look(instance: Instance) -> None:
    seen = instance.client.top(limit=ROWS, history=BLOCKS)
    assert all(row["rss_bytes"] for row in seen["processes"])
