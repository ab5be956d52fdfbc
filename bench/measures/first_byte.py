"""From the call that starts a command until its first byte reaches a follower.

Beside it, without a bound: from the write of a command that has long been running until the follower has it.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Iterator

from bench.figure import Figure, ratio
from bench.instance import Instance
from bench.run import Run
from bench.series import Series, interleave

#: Far enough apart that every line is waited for.
TICK_MS = 5


def measure(run: Run) -> list[Figure]:
    with Instance(run.directory) as instance:
        taken = interleave(run.scale.rounds, {"holdfast": lambda: first_ours(instance), "Popen": first_popen})
        first = ratio("first byte visible to a follower, to Popen", taken["holdfast"], taken["Popen"], 2.5, 1.6)
        return [first, measure_ticks(run, instance)]


def measure_ticks(run: Run, instance: Instance) -> Figure:
    ours: list[float] = []
    floor: list[float] = []
    tick = [*run.child, "tick", str(run.scale.rounds), str(TICK_MS)]
    for _ in range(2):
        ours += delays(follow_ours(instance, tick))
        floor += delays(follow_popen(tick))
    mine, popen = Series("holdfast", tuple(ours)), Series("Popen", tuple(floor))
    return Figure("a line of a running command visible, to Popen", mine.p50 / popen.p50, "×", series=(mine, popen))


def first_ours(instance: Instance) -> float:
    begun = time.monotonic()
    process = instance.client.run("echo x")
    next(instance.follow(process.id))
    took = time.monotonic() - begun
    instance.finish(process.id)
    return took


def first_popen() -> float:
    begun = time.monotonic()
    process = subprocess.Popen(["bash", "-c", "echo x"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdout
    process.stdout.read(65536)
    took = time.monotonic() - begun
    process.communicate()
    return took


def follow_ours(instance: Instance, argv: list[str]) -> Iterator[bytes]:
    process = instance.client.run(argv)
    yield from instance.follow(process.id)
    instance.finish(process.id)


def follow_popen(argv: list[str]) -> Iterator[bytes]:
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout
        while chunk := process.stdout.read(65536):
            yield chunk


def delays(chunks: Iterable[bytes]) -> list[float]:
    """How old each line is when it arrives; a line is the time at which it was written."""
    found: list[float] = []
    for chunk in chunks:
        now = time.monotonic_ns()
        found += [(now - int(line)) / 1e9 for line in chunk.split()]
    return found
