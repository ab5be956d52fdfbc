"""Short commands back to back: how many a second, how soon each has started, and what each costs in CPU.

Bursts of all subjects take turns; a ratio is that of the bursts of one round. Nothing is removed meanwhile.
"""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any

import holdfast
from bench.figure import Figure, paired
from bench.instance import Instance
from bench.measures.held import SETTLE
from bench.procfs import tree_cpu
from bench.run import Run
from bench.series import Sample, Series, interleave, quantile

_ARGV = ["/bin/true"]
_CONNECTIONS = 8
#: Starts a command, waits for its end, and returns how long the start took.
_Call = Callable[[], float]


def measure(run: Run) -> list[Figure]:
    return [*_one(run), _many(run)]


def burst(
    count: int, calls: Sequence[Callable[[], Any]], spread: Callable[..., Iterable[list[Any]]] = map
) -> tuple[float, list[Any]]:
    """Seconds for each call, and what all returned. Each of `calls` is called `count` times, back to back."""
    begun = time.monotonic()
    results = [result for some in spread(lambda call: [call() for _ in range(count)], calls) for result in some]
    return (time.monotonic() - begun) / len(results), results


def _one(run: Run) -> list[Figure]:
    """Over one connection."""
    calls: dict[str, _Call] = {"Popen": _popen}
    if run.peers.spooler:
        spooler = run.peers.spooler
        calls["task-spooler"] = lambda: spooler.start(_ARGV)
    starts: dict[str, list[float]] = {"holdfast": [], **{name: [] for name in calls}}
    cpu = {name: Usage() for name in starts}
    with Instance(run.directory) as instance:
        daemon = instance.pids[0]
        calls["holdfast"] = lambda: _ours(instance.client)

        def sample(name: str) -> float:
            with cpu[name]:
                each, took = burst(run.scale.burst, [calls[name]])
            starts[name].append(quantile(took, 0.5))
            return each

        time.sleep(SETTLE)
        before = tree_cpu(daemon)
        taken = interleave(run.scale.bursts, {name: partial(sample, name) for name in starts})
        time.sleep(SETTLE)
        after = tree_cpu(daemon)
        parts = {name: after[name] - before[name] for name in before | after}
    parts |= {"client": cpu["holdfast"].own, "the command as a child of Popen": -cpu["Popen"].children}
    name, ours = "run + wait of /bin/true, 1 connection, a second", taken["holdfast"]
    cost = _cost(parts, run.scale.bursts * run.scale.burst)
    if run.peers.spooler is None:
        return [Figure(f"{name}, to Popen", taken["Popen"].p50 / ours.p50, "×", series=tuple(taken.values())), cost]
    rate = paired(f"{name}, to task-spooler", ours, taken["task-spooler"], 0.75, 1.2, is_rate=True)
    our_start, their_start = (Series(name, tuple(starts[name])) for name in ("holdfast", "task-spooler"))
    start = paired("start back to back, p50, to task-spooler in its loop", our_start, their_start, 1.2, 0.8)
    return [rate._replace(series=tuple(taken.values())), start, cost]


def _many(run: Run) -> Figure:
    """Over several connections at once, each with a thread of its own."""
    with Instance(run.directory), ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(_CONNECTIONS))
        clients = [stack.enter_context(holdfast.connect(session=f"bench-{n}")) for n in range(_CONNECTIONS)]
        calls = [partial(_ours, client) for client in clients]
        count = run.scale.burst
        samples: dict[str, Sample] = {
            "holdfast": lambda: burst(count, calls, pool.map)[0],
            "Popen": lambda: burst(count * _CONNECTIONS, [_popen])[0],
            f"{_CONNECTIONS} × Popen": lambda: burst(count, [_popen] * _CONNECTIONS, pool.map)[0],
        }
        taken = interleave(run.scale.bursts, samples)
    name = f"the same over {_CONNECTIONS} connections, to a Popen loop"
    rate = paired(name, taken["holdfast"], taken["Popen"], 0.33, 0.6, is_rate=True)
    return rate._replace(series=tuple(taken.values()))


def _ours(client: holdfast.Client) -> float:
    begun = time.monotonic()
    process = client.run(_ARGV)
    took = time.monotonic() - begun
    client.wait(process.id)
    return took


def _popen() -> float:
    begun = time.monotonic()
    process = subprocess.Popen(_ARGV, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    took = time.monotonic() - begun
    process.wait()
    return took


class Usage:
    """User and system seconds of this process, and of its children that it reaped, within the blocks."""

    own = children = 0.0

    def __enter__(self) -> None:
        self._add(-1)

    def __exit__(self, *_: object) -> None:
        self._add(1)

    def _add(self, sign: int) -> None:
        self.own += sign * sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        self.children += sign * sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def _cost(parts: dict[str, float], count: int) -> Figure:
    each = {name: 1000 * spent / count for name, spent in parts.items()}
    note = ", ".join(f"{name} {share:.2f}" for name, share in each.items())
    return Figure("CPU per run + wait, everything but the command", sum(each.values()), "ms", 4.0, 2.0, note=note)
