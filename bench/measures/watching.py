"""A gigabyte with a hundred patterns watched for, and how soon after it was written the owner hears of a match."""

from __future__ import annotations

import sys
import time

from bench.figure import Figure, ratio
from bench.instance import Instance
from bench.measures.flood import flood_file, touch_memory
from bench.run import Run
from bench.series import Sample, Series, interleave, quantile

#: None of them is in the log.
LITERALS = [f"component-{number} failed" for number in range(60)]
PATTERNS = [f"(?:fatal|panic)-{number}: [a-z]+ at 0x[0-9a-f]+" for number in range(40)]
_STAMP = "import sys, time\nfor line in sys.stdin: print(f'MARK {time.monotonic_ns()} end', flush=True)"
_NOISE = "while read -t 0.02 x; [ $? -gt 128 ]; do echo noise of a neighbour; done"
_CONFIG = "watch_window = 0\nbreaker_limit = 0\n"


def measure(run: Run) -> list[Figure]:
    produce = [*run.child, "produce", str(run.scale.flood_bytes)]
    with Instance(run.directory) as instance:
        samples: dict[str, Sample] = {
            "holdfast, 100 patterns": lambda: _flood(instance, produce, run.scale.flood_bytes),
            "> file": lambda: flood_file(produce, run),
        }
        taken = interleave(run.scale.flood_rounds, samples)
    name = f"{run.scale.flood_bytes / 2**30:.3g} GiB with 100 patterns watched for, wall, to > file"
    ours, file = taken.values()
    flood = ratio(name, ours, file, 1.5, 1.15)
    return [flood, *_latencies(run)]


def _flood(instance: Instance, argv: list[str], size: int) -> float:
    touch_memory(size)
    begun = time.monotonic()
    process = instance.client.run(argv, log_cap=2 * size, watch=LITERALS, watch_regex=PATTERNS)
    ended = instance.client.wait(process.id)
    took = time.monotonic() - begun
    assert (ended.output_bytes, (ended.watch_data or {})["matches"]) == (size, 0), ended
    instance.finish(process.id)
    return took


def _latencies(run: Run) -> list[Figure]:
    """From the write to the answer of a waiting `inbox`, p99: alone, and beside noisy neighbours."""
    with Instance(run.directory, config=_CONFIG) as instance:
        quiet = _marks(instance, 5 * run.scale.rounds)
        neighbours = [instance.client.run(_NOISE, stdin=True, watch=["never to be seen"]) for _ in range(50)]
        noisy = _marks(instance, 5 * run.scale.rounds)
        for neighbour in neighbours:
            instance.client.kill(neighbour.id)
    return [
        _figure("write to notification, p99", quiet, 20.0),
        _figure("the same beside 50 noisy neighbours", noisy, 200.0),
    ]


def _marks(instance: Instance, rounds: int) -> Series:
    client = instance.client
    process = client.run([sys.executable, "-c", _STAMP], stdin=True, watch_regex=["MARK [0-9]+ end"])
    taken = []
    for _ in range(rounds):
        client.send(process.id, "go")
        (notice,) = client.inbox(wait=30)
        received = time.monotonic_ns()
        taken.append((received - int(notice.data["output"].split()[1])) / 1e6)
        client.ack(notice)
    client.kill(process.id)
    return Series("write to notification", tuple(taken))


def _figure(name: str, series: Series, must: float) -> Figure:
    return Figure(name, quantile(series.values, 0.99), "ms", must, must / 2, (series,))
