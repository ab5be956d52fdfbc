"""Many idle processes held: what each costs in memory, what they cost in CPU, how fast a new keeper has them all."""

from __future__ import annotations

import os
import signal
import time

from bench.figure import Figure
from bench.instance import Instance
from bench.procfs import cpu_seconds, own_bytes
from bench.run import Run
from bench.series import Series

KB = 1000.0
#: Of keeper kills for each crowd.
KILLS = 3
#: Seconds after which what a burst of starts left to do has been done.
SETTLE = 1.0


def measure(run: Run) -> list[Figure]:
    memory: list[float] = []
    idle: list[float] = []
    adoption: list[float] = []
    for _ in range(run.scale.held_rounds):
        with Instance(run.directory) as instance:
            memory.append(memory_each(instance, run.scale.held))
            idle.append(idle_share(instance, run.scale.idle_seconds))
            adoption += [adopt(instance, run.scale.held) for _ in range(KILLS)]
    held = f"{run.scale.held:,} held"
    return [
        absolute("private memory per held idle process", memory, "kB", 12.0, 10.0),
        absolute(f"idle CPU, {held}, of a core", idle, "%", 0.1, 0.03),
        absolute(f"re-adoption after SIGKILL of the keeper, {held}", adoption, "s", 0.3, 0.2),
    ]


def absolute(name: str, values: list[float], unit: str, must: float, aim: float) -> Figure:
    ours = Series("holdfast", tuple(values))
    return Figure(name, ours.p50, unit, must, aim, (ours,))


def memory_each(instance: Instance, count: int) -> float:
    """The growth in kB for each started process."""
    time.sleep(SETTLE)
    before = own_bytes(instance.family)
    for _ in range(count):
        instance.client.run(["sleep", "3600"], if_running="allow")
    time.sleep(SETTLE)
    return (own_bytes(instance.family) - before) / count / KB


def idle_share(instance: Instance, seconds: float) -> float:
    """Percent of a core that all of ours take while nothing happens, and nothing has happened for half as long."""
    pids = instance.family
    time.sleep(seconds / 2)
    spent, begun = cpu_seconds(pids), time.monotonic()
    time.sleep(seconds)
    return 100.0 * (cpu_seconds(pids) - spent) / (time.monotonic() - begun)


def adopt(instance: Instance, count: int) -> float:
    """Seconds from the kill until a new keeper answers for every one of them."""
    _, keeper, _ = instance.pids
    begun = time.monotonic()
    os.kill(keeper, signal.SIGKILL)
    while instance.answered_for(other_than=keeper) < count:
        assert time.monotonic() - begun < 60.0, "no new keeper has them all"
    return time.monotonic() - begun
