"""From a publisher to a subscriber in another program, over two bridges and the daemon, beside the same within one."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable

from bench.figure import Figure
from bench.instance import Instance
from bench.run import Run
from bench.series import Sample, interleave
from holdfast.events import Bus, bridge

#: The other program: says every event again, under another topic, so that one clock measures both ways.
_OTHER = """
import sys
from holdfast.events import bridge, publish, subscribe
subscribe("bench.there", lambda event: publish("bench.back", {"k": event["k"]}))
bridge.start(patterns="bench.*")
sys.stdin.read()
"""


def measure(run: Run) -> list[Figure]:
    with Instance(run.directory):
        bus, alone = Bus(), Bus()
        alone.subscribe("bench.there", lambda event: alone.publish("bench.back", {"k": event["k"]}))
        joined = bridge.start(patterns="bench.*", bus=bus)
        other = subprocess.Popen([sys.executable, "-c", _OTHER], stdin=subprocess.PIPE)
        try:
            there, here = _there_and_back(bus, 0.2), _there_and_back(alone, 0.2)
            _until_answered(there)
            samples: dict[str, Sample] = {"over bridges": there, "within": here}
            taken = interleave(run.scale.rounds, samples)
        finally:
            joined.stop()
            other.communicate()
    bridged, within = taken.values()
    added = (bridged.p50 - within.p50) * 1000
    return [Figure("a bridge adds, one way, p50", added, "ms", 5.0, 2.0, (bridged, within))]


def _there_and_back(bus: Bus, timeout: float) -> Sample:
    """Seconds for one way: half of both; at most `timeout`."""
    received = threading.Event()
    bus.subscribe("bench.back", lambda event: received.set())

    def sample() -> float:
        received.clear()
        begun = time.perf_counter()
        bus.publish("bench.there", {"k": 0})
        received.wait(timeout)
        return (time.perf_counter() - begun) / 2

    return sample


def _until_answered(sample: Callable[[], float]) -> None:
    until = time.monotonic() + 30
    while sample() >= 0.1:
        if time.monotonic() > until:
            raise RuntimeError("the other program does not answer")
