"""`holdfast ps` as a user calls it, compared with a Python that does nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from bench.figure import Figure, ratio
from bench.instance import Instance
from bench.run import Run
from bench.series import Sample, interleave

#: Beside the interpreter: the one of the same virtual environment.
HOLDFAST = Path(sys.executable).with_name("holdfast")


def measure(run: Run) -> list[Figure]:
    with Instance(run.directory) as instance:
        for _ in range(run.scale.listed):
            instance.client.run(["sleep", "3600"], if_running="allow")
        samples: dict[str, Sample] = {
            "holdfast": lambda: wall([str(HOLDFAST), "ps"]),
            "python -c pass": lambda: wall([sys.executable, "-c", "pass"]),
        }
        taken = interleave(run.scale.list_rounds, samples)
    name = f"holdfast ps, {run.scale.listed} processes, to python -c pass"
    return [ratio(name, taken["holdfast"], taken["python -c pass"], 4.0, 2.5)]


def wall(argv: list[str]) -> float:
    begun = time.monotonic()
    subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    return time.monotonic() - begun
