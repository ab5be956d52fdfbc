"""A foreground call of the tool `terminal`, beside bash started and waited for."""

from __future__ import annotations

import subprocess

from bench.figure import Figure, paired
from bench.instance import Instance
from bench.measures.rate import burst
from bench.run import Run
from bench.series import Sample, interleave
from holdfast.tools import Tools


def measure(run: Run) -> list[Figure]:
    with Instance(run.directory) as instance, Tools("bench", home=instance.home, cwd=run.directory) as tools:
        _ours(tools)
        samples: dict[str, Sample] = {
            "holdfast": lambda: burst(run.scale.burst, [lambda: _ours(tools)])[0],
            "subprocess.run": lambda: burst(run.scale.burst, [_bash])[0],
        }
        taken = interleave(run.scale.bursts, samples)
    name = "a foreground terminal call of true, to subprocess.run of bash"
    return [paired(name, taken["holdfast"], taken["subprocess.run"], 3.5, 2.0)]


def _ours(tools: Tools) -> None:
    answer = tools.answer("terminal", {"command": "true"})
    assert answer["exit_code"] == 0, answer


def _bash() -> None:
    subprocess.run(["bash", "-c", "true"], check=True)
