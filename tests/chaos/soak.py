"""`python -m tests.chaos.soak --minutes 60`: many sessions poll their processes, and nothing grows.

50 sessions with 20 processes each, whose owners call `ps` twice a second. The times of `ps`, the memory and the
descriptors of daemon, keeper and anchor are printed every minute.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import threading
import time
from typing import NamedTuple

import holdfast
from tests.chaos import parts
from tests.support import end_instance

#: Must: `ps` at the 99th percentile, in seconds.
_SLOWEST = 0.05
#: What the memory of all three may grow by after the first fifth of the time; caches and free lists settle before.
_GROWTH_BYTES = 16 << 20
_GROWTH_FILES = 16
_THREADS = 5
#: Writes a line every half minute.
_COMMAND = "while :; do printf '%015d\\n' $SECONDS; sleep 30; done"


class Sample(NamedTuple):
    bytes: dict[str, int]
    files: dict[str, int]

    def __str__(self) -> str:
        shown = (f"{role} {self.bytes[role] / 1e6:.1f} MB, {self.files[role]} files" for role in parts.ROLES)
        return "; ".join(shown)


class SessionPolls(threading.Thread):
    """Polls some sessions in turn, so that each is asked so many times a second."""

    def __init__(self, home: str, sessions: list[str], rate: float) -> None:
        super().__init__(daemon=True)
        self._clients = [holdfast.connect(session=session, home=home) for session in sessions]
        self._pause = 1 / rate / len(sessions)
        self._is_over = threading.Event()
        self.times: list[float] = []
        self.wrong = 0
        self.expected = 0

    def run(self) -> None:
        due = time.monotonic()
        number = 0
        while not self._is_over.is_set():
            client = self._clients[number % len(self._clients)]
            number += 1
            began = time.monotonic()
            shown = client.ps(session=client.session)
            self.times.append(time.monotonic() - began)
            self.wrong += len(shown) != self.expected
            due = max(due + self._pause, time.monotonic() - 1.0)
            self._is_over.wait(max(0.0, due - time.monotonic()))

    def stop(self) -> None:
        self._is_over.set()
        self.join()
        for client in self._clients:
            client.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long to poll (default: 60)")
    parser.add_argument("--sessions", type=int, default=50, help="default: 50")
    parser.add_argument("--processes", type=int, default=20, help="of each session (default: 20)")
    parser.add_argument("--rate", type=float, default=2.0, help="polls of each session per second (default: 2)")
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="holdfast-soak-")
    home = f"{directory}/home"
    try:
        faults = _soak(home, arguments)
    finally:
        end_instance(home)
        shutil.rmtree(directory, ignore_errors=True)
    sys.exit(faults > 0)


def _soak(home: str, arguments: argparse.Namespace) -> int:
    names = [f"session-{number}" for number in range(arguments.sessions)]
    polls = [SessionPolls(home, names[at::_THREADS], arguments.rate) for at in range(min(_THREADS, len(names)))]
    with holdfast.connect(home=home) as client:
        for name in names:
            for _ in range(arguments.processes):
                client.run(_COMMAND, session=name, shell="bash", log_cap=1 << 20)
    total = arguments.sessions * arguments.processes
    print(f"{total:,} processes of {arguments.sessions} sessions run", flush=True)
    for poll in polls:
        poll.expected = arguments.processes
        poll.start()
    samples, times, seen = list[Sample](), list[float](), 0
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < arguments.minutes * 60:
        time.sleep(min(60.0, max(0.1, arguments.minutes * 60 - elapsed)))
        samples.append(_sample(home))
        times = [one for poll in polls for one in list(poll.times)]
        print(f"minute {len(samples)}: {len(times) - seen:,} polls, {_slow(times)}; {samples[-1]}", flush=True)
        seen = len(times)
    for poll in polls:
        poll.stop()
    faults = [*_grown(samples), *_too_slow(times)]
    if wrong := sum(poll.wrong for poll in polls):
        faults.append(f"{wrong} replies did not show {arguments.processes} processes")
    for fault in faults:
        print(f"FAULT: {fault}", flush=True)
    verdict = f"{len(times):,} polls in {arguments.minutes:g} min, {_slow(times)}; {samples[-1]}"
    print(f"{verdict}: {len(faults)} faults", flush=True)
    return len(faults)


def _sample(home: str) -> Sample:
    found = parts.find_all(home)
    return Sample(
        {role: sum(map(parts.resident_bytes, found[role])) for role in parts.ROLES},
        {role: sum(map(parts.open_files, found[role])) for role in parts.ROLES},
    )


def _slow(times: list[float]) -> str:
    p50, p99 = _percentile(times, 50), _percentile(times, 99)
    return f"ps p50 {p50 * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms, longest {max(times) * 1000:.0f} ms"


def _percentile(times: list[float], percent: int) -> float:
    return statistics.quantiles(times, n=100)[percent - 1]


def _too_slow(times: list[float]) -> list[str]:
    p99 = _percentile(times, 99)
    return [f"the p99 of ps is {p99 * 1000:.1f} ms"] if p99 > _SLOWEST else []


def _grown(samples: list[Sample]) -> list[str]:
    """What grew from the first fifth to the last."""
    fifth = max(1, len(samples) // 5)
    first, last = samples[:fifth][-1], samples[-1]
    bytes_, files = (
        {role: after[role] - before[role] for role in parts.ROLES}
        for before, after in ((first.bytes, last.bytes), (first.files, last.files))
    )
    found = [f"{role} grew by {bytes_[role] / 1e6:.1f} MB" for role in parts.ROLES if bytes_[role] > _GROWTH_BYTES]
    return found + [f"{role} has {files[role]} more files" for role in parts.ROLES if files[role] > _GROWTH_FILES]


if __name__ == "__main__":
    main()
