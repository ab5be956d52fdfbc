"""A log of a gigabyte looked through by the watch process for a hundred patterns, beside `grep -c` for the same.

Both find the log in memory. The daemon has no part in it: the watch process is asked as the daemon asks it.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time

from bench.figure import Figure, ratio
from bench.instance import Instance
from bench.run import Run
from bench.series import Sample, interleave
from holdfast.daemon.workers.watch import WatchWorker
from holdfast.model.process import ProcessId

_WORDS = ("error", "fatal", "panic", "refused", "timeout", "segfault", "listening", "ready", "compiled", "denied")
_TEXTS = tuple(f"{_WORDS[n % 10].upper()} {n}: {_WORDS[n // 10]}" for n in range(100))
_EXPRESSIONS = (
    r"worker {} (died|was killed)",
    r"\bjob-{}[a-f]+ failed with \w+",
    r"^E{}\d+.*(corrupt|unreachable)",
    r"took=\d+s for request {}$",
    r"(Error|Exception): .*{}$",
)
#: How many of them are texts: all, and half of them, the others being expressions.
KINDS = {"texts": 100, "texts and expressions": 50}


def measure(run: Run) -> list[Figure]:
    size = run.scale.flood_bytes
    produce = [*run.child, "produce", str(size)]
    with Instance(run.directory) as instance, tempfile.NamedTemporaryFile(dir=run.directory) as file:
        process = instance.client.run(produce, log_cap=2 * size)
        instance.client.wait(process.id)
        subprocess.run(produce, stdin=subprocess.DEVNULL, stdout=file, check=True)
        figures = [figure for kind in KINDS for figure in _figures(run, instance, process.id, file.name, kind)]
        instance.finish(process.id)
    return figures


def _figures(run: Run, instance: Instance, process: str, path: str, kind: str) -> list[Figure]:
    literals = _TEXTS[: KINDS[kind]]
    patterns = tuple(_EXPRESSIONS[n % 5].format(n) for n in range(100 - len(literals)))
    with tempfile.NamedTemporaryFile("w", dir=run.directory) as file:
        how = "-E" if patterns else "-F"
        file.write("\n".join((*literals, *patterns)).replace(r"\d", "[0-9]"))
        file.flush()
        samples: dict[str, Sample] = {
            "holdfast": lambda: asyncio.run(_scan(f"{instance.home}/place", process, literals, patterns)),
            "grep -c": lambda: _grep([how, "-f", file.name, path]),
        }
        taken = interleave(run.scale.flood_rounds, samples)
    size = run.scale.flood_bytes
    name = f"watch {size / 2**30:.3g} GiB for 100 {kind}"
    return [
        Figure(f"{name}, a gigabyte", taken["holdfast"].p50 / size * 1e9, "s", 2.0, 1.0, (taken["holdfast"],)),
        ratio(f"{name}, to grep -c", taken["holdfast"], taken["grep -c"], 2.0, 1.0),
    ]


async def _scan(place: str, process: str, literals: tuple[str, ...], patterns: tuple[str, ...]) -> float:
    link = WatchWorker(place, lambda _: place, dict(os.environ))
    try:
        await link.scan(ProcessId(process), "out", literals, patterns, 0, 0, False)  # until it is there
        begun, after, is_complete = time.monotonic(), 0, False
        while not is_complete:
            matches, after, is_complete, *_ = await link.scan(
                ProcessId(process), "out", literals, patterns, after, None, False
            )
            assert not matches
        return time.monotonic() - begun
    finally:
        await link.aclose()


def _grep(arguments: list[str]) -> float:
    begun = time.monotonic()
    counted = subprocess.run(["grep", "-c", *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert counted.stdout == b"0\n", counted
    return time.monotonic() - begun
