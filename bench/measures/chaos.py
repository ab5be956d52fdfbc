"""Random kills of our own processes, one or two at a time: the storms of the tests, until there were enough of them."""

from __future__ import annotations

import tempfile

from bench.figure import Figure
from bench.run import Run
from tests.chaos.storm import Storm, Verdict
from tests.support import end_instance

CHILDREN = 14
ROUNDS = 60
#: The figure is about kills.
WITHOUT = ("stop", "long stop", "descriptors", "cgroup")


def measure(run: Run) -> list[Figure]:
    verdicts: list[Verdict] = []
    while (kills := sum(verdict.kills for verdict in verdicts)) < run.scale.kills:
        verdicts.append(storm(run, seed=len(verdicts), rounds=min(ROUNDS, run.scale.kills)))
    over = f"over {kills:,} random kills"
    commands = sum(verdict.children for verdict in verdicts)
    inexact = sum(len(verdict.inexact) for verdict in verdicts)
    wrong = sum(len(verdict.wrong) for verdict in verdicts)
    note = f"of {commands:,} commands, on pipes and PTYs, writing and reading"
    return [
        Figure(f"commands with a byte lost {over}", inexact, "", 0.0, 0.0, note=note),
        Figure(f"exit codes wrong {over}", wrong, "", 0.0, 0.0, note=note),
    ]


def storm(run: Run, seed: int, rounds: int) -> Verdict:
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=run.directory) as directory:
        home = f"{directory}/home"
        try:
            return Storm(home, seed, CHILDREN, rounds, without=WITHOUT).run()
        finally:
            end_instance(home)
