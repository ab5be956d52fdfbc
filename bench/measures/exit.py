"""From the last thing a command does until `wait` returns, its exit record durable."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.figure import Figure
from bench.instance import Instance
from bench.run import Run
from bench.series import Sample, interleave

#: Long enough for the waiting call to be in place.
DELAY_MS = 20


def measure(run: Run) -> list[Figure]:
    with Instance(run.directory) as instance, tempfile.TemporaryDirectory(dir=run.directory) as directory:
        stamp = Path(directory) / "left"
        argv = [*run.child, "leave", str(stamp), str(DELAY_MS)]
        samples: dict[str, Sample] = {
            "holdfast": lambda: since(stamp, lambda: known_ours(instance, argv)),
            "pidfd": lambda: since(stamp, lambda: known_pidfd(argv)),
        }
        if run.peers.hermes:
            hermes = run.peers.hermes
            samples["hermes"] = lambda: since(stamp, lambda: hermes.known_at(" ".join(argv)))
        taken = interleave(run.scale.rounds, samples)
    value = taken["holdfast"].p50 / taken["pidfd"].p50
    return [Figure("exit until wait returns, to pidfd + epoll", value, "×", 4.5, 2.5, tuple(taken.values()))]


def since(stamp: Path, known: Callable[[], int]) -> float:
    """Seconds between the command's own stamp and the time when its exit was known."""
    known_at = known()
    return (known_at - int(stamp.read_text())) / 1e9


def known_ours(instance: Instance, argv: list[str]) -> int:
    process = instance.client.run(argv)
    instance.client.wait(process.id)
    known_at = time.monotonic_ns()
    instance.finish(process.id)
    return known_at


def known_pidfd(argv: list[str]) -> int:
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    fd = os.pidfd_open(process.pid)
    with select.epoll() as epoll:
        epoll.register(fd, select.EPOLLIN)
        epoll.poll()
    os.waitid(os.P_PIDFD, fd, os.WEXITED | os.WNOWAIT)
    known_at = time.monotonic_ns()
    os.close(fd)
    process.wait()
    return known_at
