"""From the call until the id is returned: the command runs, and is in the list and on disk.

Each start is a lone one, after a pause: what an idle machine does slowly counts. `rate` has those back to back.
"""

from __future__ import annotations

import subprocess
import time

from bench.figure import Figure
from bench.instance import Instance
from bench.run import Run
from bench.series import Sample, Series, interleave

NAME = "lone start until the id is returned, to hermes' spawn_local"


def measure(run: Run) -> list[Figure]:
    with Instance(run.directory) as instance:
        samples: dict[str, Sample] = {"holdfast": lambda: start_ours(instance), "Popen": start_popen}
        if run.peers.hermes:
            hermes = run.peers.hermes
            samples["hermes"] = lambda: hermes.start("true")
        if run.peers.spooler:
            spooler = run.peers.spooler
            samples["task-spooler"] = lambda: spooler.start(["bash", "-c", "true"])
        taken = interleave(run.scale.rounds, samples, run.scale.pause)
    return [figure(taken)]


def figure(taken: dict[str, Series]) -> Figure:
    """Beside hermes; the aim is where task-spooler stands. Without peers, beside Popen and without a bound."""
    ours, hermes, spooler = taken["holdfast"], taken.get("hermes"), taken.get("task-spooler")
    series = tuple(taken.values())
    if hermes is None:
        return Figure(
            "lone start until the id is returned, to Popen", ours.p50 / taken["Popen"].p50, "×", series=series
        )
    aim = spooler.p50 / hermes.p50 if spooler else None
    return Figure(NAME, ours.p50 / hermes.p50, "×", 1.0, aim, series, "aim: task-spooler in the same run")


def start_ours(instance: Instance) -> float:
    begun = time.monotonic()
    process = instance.client.run("true")
    took = time.monotonic() - begun
    instance.finish(process.id)
    return took


def start_popen() -> float:
    begun = time.monotonic()
    process = subprocess.Popen(
        ["bash", "-c", "true"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    took = time.monotonic() - begun
    process.communicate()
    return took
