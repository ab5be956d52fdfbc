"""A log of a gigabyte searched, beside `grep -c` on a file with the same bytes.

Both find the log in memory. grep counts into a pipe: into /dev/null it would stop at the first match.
"""

from __future__ import annotations

import subprocess
import tempfile
import time

from bench.figure import Figure, ratio
from bench.instance import Instance
from bench.run import Run
from bench.series import Sample, interleave

#: A text that few lines have; a pattern that begins with a text; one of several texts, which begin with none.
PATTERNS = {
    "a text": "took=976ms",
    "a pattern": "status=(404|5[0-9][0-9])",
    "one of three words": "error|fatal|panic",
}


def measure(run: Run) -> list[Figure]:
    size = run.scale.flood_bytes
    produce = [*run.child, "produce", str(size)]
    with Instance(run.directory) as instance, tempfile.NamedTemporaryFile(dir=run.directory) as file:
        process = instance.client.run(produce, log_cap=2 * size)
        instance.client.wait(process.id)
        subprocess.run(produce, stdin=subprocess.DEVNULL, stdout=file, check=True)
        figures = [_figure(run, instance, process.id, file.name, kind) for kind in PATTERNS]
        instance.finish(process.id)
    return figures


def _figure(run: Run, instance: Instance, process: str, path: str, kind: str) -> Figure:
    pattern, found = PATTERNS[kind], set()

    def ours() -> float:
        begun = time.monotonic()
        found.add(instance.client.search(process, pattern, count=True).count)
        return time.monotonic() - begun

    def theirs() -> float:
        begun = time.monotonic()
        counted = subprocess.run(
            ["grep", "-cE", pattern, path], stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        found.add(int(counted.stdout))
        return time.monotonic() - begun

    samples: dict[str, Sample] = {"holdfast": ours, "grep -c": theirs}
    taken = interleave(run.scale.flood_rounds, samples)
    assert len(found) == 1, f"they differ: {found}"
    name = f"search {run.scale.flood_bytes / 2**30:.3g} GiB for {kind}, to grep -c"
    return ratio(name, taken["holdfast"], taken["grep -c"], 2.0, 1.0)
