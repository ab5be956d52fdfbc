"""A screen of a process that wrote a lot: of one that is followed, and after the daemon was killed."""

from __future__ import annotations

import os
import signal
import sys
import time

from bench.figure import Figure, ratio
from bench.instance import Instance
from bench.run import Run
from bench.series import Sample, Series, interleave
from tests.support import eventually

#: Coloured lines, as a compiler writes them; then it stays.
WRITER = """
import os, sys, time
line = b"[%3d%%] \\x1b[32mBuilding CXX object\\x1b[0m src/some/module/number_%d.cc.o\\n"
piece = b"".join(line % (n % 100, n) for n in range(1000))
for _ in range(int(sys.argv[1]) // len(piece) + 1):
    os.write(1, piece)
os.write(1, b"THE END")
time.sleep(3600)
"""
MUST, AIM = 200.0, 20.0


def measure(run: Run) -> list[Figure]:
    with Instance(run.directory) as instance:
        process = instance.client.run([sys.executable, "-c", WRITER, str(run.scale.screen_bytes)], pty=True)
        eventually(lambda: "THE END" in instance.client.screen(process.id).text, timeout=600.0, pause=0.1)
        samples: dict[str, Sample] = {
            "screen": lambda: shown(instance, process.id),
            "reading the log": lambda: read(instance, process.id),
        }
        taken = interleave(run.scale.list_rounds, samples)
        fresh = Series("screen", tuple(after_a_crash(instance, process.id) for _ in range(run.scale.list_rounds)))
    size = f"{run.scale.screen_bytes // 1_000_000} MB"
    return [
        in_milliseconds(f"screen after {size}, p50", taken["screen"]),
        in_milliseconds(f"first screen of a new daemon after {size}, p50", fresh),
        ratio(f"screen after {size}, to reading that log", taken["screen"], taken["reading the log"], 1.0, 0.1),
    ]


def in_milliseconds(name: str, series: Series) -> Figure:
    series = Series(series.name, tuple(value * 1000 for value in series.values))
    return Figure(name, series.p50, "ms", MUST, AIM, (series,))


def shown(instance: Instance, process: str) -> float:
    begun = time.monotonic()
    assert "THE END" in instance.client.screen(process).text
    return time.monotonic() - begun


def read(instance: Instance, process: str) -> float:
    begun = time.monotonic()
    for _ in instance.client.read(process, offset=0):
        pass
    return time.monotonic() - begun


def after_a_crash(instance: Instance, process: str) -> float:
    os.kill(instance.pids[0], signal.SIGKILL)
    instance.client.status()
    return shown(instance, process)
