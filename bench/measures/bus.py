"""Publishing within a program: the cost of subscribers that do not match."""

from __future__ import annotations

import time

from bench.figure import Figure
from bench.run import Run
from bench.series import Series, interleave
from holdfast.events import Bus

_SUBSCRIBERS = 1000
_AT_ONCE = 2000


def measure(run: Run) -> list[Figure]:
    alone, crowded, naive = Bus(), Bus(), Linear()
    for bus in (alone, crowded, naive):
        bus.subscribe("process.*.ended", _ignore)
    for number in range(_SUBSCRIBERS - 1):
        for bus in (crowded, naive):
            bus.subscribe(f"other{number}.**.topic.*", _ignore)
    samples = {
        "1 of 1,000": lambda: timed(crowded, _AT_ONCE),
        "1 of 1": lambda: timed(alone, _AT_ONCE),
        "linear, 1 of 1,000": lambda: timed(naive, 10),
    }
    taken = interleave(run.scale.rounds, samples)
    return figures(taken)


def figures(taken: dict[str, Series]) -> list[Figure]:
    crowded, alone, naive = taken.values()
    ours = (crowded, alone)
    return [
        Figure("publish to 1 of 1,000 subscribers, to 1 of 1", crowded.p50 / alone.p50, "×", 2.0, None, ours),
        Figure(
            "publish to 1 of 1,000, to a linear matcher", crowded.p50 / naive.p50, "×", 1 / 20, None, (crowded, naive)
        ),
    ]


def timed(bus: Bus | Linear, count: int) -> float:
    """Seconds for one event."""
    begun = time.perf_counter()
    for _ in range(count):
        bus.publish("process.proc_1.ended", {"code": 0})
    return (time.perf_counter() - begun) / count


class Linear:
    """What one writes first: every pattern is tried for every event."""

    def __init__(self) -> None:
        self._subscribers: list[tuple[list[str], object]] = []

    def subscribe(self, pattern: str, callback: object) -> None:
        self._subscribers.append((pattern.split("."), callback))

    def publish(self, topic: str, payload: dict[str, object]) -> None:
        segments = topic.split(".")
        envelope = {"type": topic, "ts": time.time(), "src": segments[0], **payload}
        for pattern, callback in self._subscribers:
            if _fits(pattern, segments):
                callback(envelope)  # type: ignore[operator]


def _fits(pattern: list[str], topic: list[str]) -> bool:
    if not pattern:
        return not topic
    if pattern[0] == "**":
        return any(_fits(pattern[1:], topic[skipped:]) for skipped in range(len(topic) + 1))
    return bool(topic) and pattern[0] in ("*", topic[0]) and _fits(pattern[1:], topic[1:])


def _ignore(envelope: object) -> None:
    return
