"""A gigabyte of log lines through a pipe: how long it takes, and how much of our CPU.

The producer makes every line anew, as a program that logs does. Beside it, without a bound: one that writes the same
block again and again. It makes a gigabyte in a third of a second, which no pipe can take as fast as a file: the bytes
are copied twice instead of once.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import tempfile
import time

from bench.figure import Figure, ratio
from bench.instance import Instance
from bench.procfs import cpu_seconds
from bench.run import Run
from bench.series import Sample, Series, interleave


def measure(run: Run) -> list[Figure]:
    our_cpu: list[float] = []
    their_cpu: list[float] = []
    produce, copy = ([*run.child, verb, str(run.scale.flood_bytes)] for verb in ("produce", "copy"))
    with Instance(run.directory) as instance:
        samples: dict[str, Sample] = {
            "holdfast": lambda: flood_ours(instance, produce, run.scale.flood_bytes, our_cpu),
            "> file": lambda: flood_file(produce, run),
            "holdfast, copy": lambda: flood_ours(instance, copy, run.scale.flood_bytes, []),
            "> file, copy": lambda: flood_file(copy, run),
        }
        if run.peers.hermes:
            hermes = run.peers.hermes
            samples["hermes"] = lambda: keep_cpu(hermes.flood(" ".join(produce)), their_cpu)
        taken = interleave(run.scale.flood_rounds, samples)
    ours, file, ours_copy, file_copy, *others = taken.values()
    wall = ratio(f"{size(run)} through a pipe, wall, to > file", ours, file, 1.05, 1.0)
    cpu = cpu_figure(f"our CPU for {size(run)}", Series("holdfast", tuple(our_cpu)), Series("hermes", tuple(their_cpu)))
    worst = Figure(
        f"{size(run)} of one block repeated, wall, to > file",
        ours_copy.p50 / file_copy.p50,
        "×",
        series=(ours_copy, file_copy),
    )
    return [wall._replace(series=(ours, file, *others)), cpu, worst]


def cpu_figure(name: str, ours: Series, hermes: Series) -> Figure:
    if not hermes.values:
        return Figure(name, ours.p50, "s", series=(ours,))
    return ratio(f"{name}, to hermes' reader", ours, hermes, 1 / 4, 1 / 7)


def flood_ours(instance: Instance, argv: list[str], expected: int, cpu: list[float]) -> float:
    touch_memory(expected)
    pids = instance.pids
    spent = cpu_seconds(pids)
    begun = time.monotonic()
    process = instance.client.run(argv, log_cap=2 * expected)
    ended = instance.client.wait(process.id)
    took = time.monotonic() - begun
    cpu.append(cpu_seconds(pids) - spent)
    assert (ended.output_bytes, ended.dropped_bytes) == (expected, 0), ended
    instance.finish(process.id)
    return took


def flood_file(argv: list[str], run: Run) -> float:
    with tempfile.NamedTemporaryFile(dir=run.directory, prefix="holdfast-bench-") as file:
        touch_memory(run.scale.flood_bytes)
        begun = time.monotonic()
        subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=file, check=True)
        return time.monotonic() - begun


def touch_memory(size: int) -> None:
    """Have the machine hand out that much memory. A virtual one is slow to do so the first time, by seconds a GiB."""
    os.sync()
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    mmap.mmap(-1, size + size // 4, flags=flags).close()


def keep_cpu(answer: tuple[float, float], cpu: list[float]) -> float:
    wall, spent = answer
    cpu.append(spent)
    return wall


def size(run: Run) -> str:
    return f"{run.scale.flood_bytes / 2**30:.3g} GiB"
