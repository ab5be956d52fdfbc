"""What is measured of a manager, and how: the same for all of them."""

from __future__ import annotations

import os
import shlex
import signal
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench.compare.peer import Peer, is_alive, until


class Scale(NamedTuple):
    rounds: int
    listed: int
    budget: float
    """Seconds for one measure of one manager; at least two rounds are taken."""


FULL = Scale(rounds=30, listed=50, budget=20.0)
QUICK = Scale(rounds=3, listed=5, budget=5.0)


class Row(NamedTuple):
    """Times are seconds (the median). None: it could not be measured, or does not apply."""

    name: str
    asked_by: str
    start: float | None
    exit_known: float | None
    listing: float | None
    child_survives: bool | None
    code_known: bool | None
    descendant_killed: bool | None


def measure(peer: Peer, scale: Scale) -> Row:
    """All measures of one manager. It is opened and closed here."""
    peer.open()
    try:
        return Row(
            peer.name,
            peer.asked_by,
            start=_median(scale, lambda: _start(peer)),
            exit_known=_median(scale, lambda: _exit_known(peer)),
            listing=_listing(peer, scale),
            descendant_killed=_descendant_killed(peer),
            **dict(zip(("child_survives", "code_known"), _survival(peer), strict=True)),
        )
    finally:
        peer.close()


def _median(scale: Scale, sample: Callable[[], float]) -> float:
    until_then = time.monotonic() + scale.budget
    taken: list[float] = []
    sample()  # warm
    while len(taken) < 2 or (len(taken) < scale.rounds and time.monotonic() < until_then):
        taken.append(sample())
    return statistics.median(taken)


def _start(peer: Peer) -> float:
    key, took = peer.timed_start("true")
    peer.wait(key)
    return took


def _exit_known(peer: Peer) -> float:
    """From just before the command's exit until the manager says that it ended."""
    at = peer.scratch / "at"
    key = peer.start(f"sleep 0.2; echo $EPOCHREALTIME > {shlex.quote(str(at))}")
    peer.wait(key)
    return max(0.0, time.time() - float(at.read_text().replace(",", ".")))


def _listing(peer: Peer, scale: Scale) -> float | None:
    until_then = time.monotonic() + 2 * scale.budget
    keys: list[str] = []
    while len(keys) < scale.listed and time.monotonic() < until_then:
        keys.append(peer.start("exec sleep 300"))
    if peer.count() < len(keys):
        return None

    def listed() -> float:
        began = time.perf_counter()
        peer.count()
        return time.perf_counter() - began

    took = _median(scale, listed)
    for key in keys:
        peer.kill(key)
    return took


def _descendant_killed(peer: Peer) -> bool | None:
    """Whether killing a command also ends what it started in a session of its own."""
    pids = peer.scratch / "descendant"
    key = peer.start(f"setsid bash -c 'echo $$ > {shlex.quote(str(pids))}; exec sleep 300' & wait")
    pid = until(lambda: _first_pid(pids))
    if pid is None:
        return None
    peer.kill(key)
    until(lambda: None if is_alive(pid) else True, 0.02, 5.0)
    survived = is_alive(pid)
    _end(pid)
    return not survived


def _survival(peer: Peer) -> tuple[bool | None, bool | None]:
    """Whether a command outlives SIGKILL of its manager, and whether its exit code is known afterwards."""
    pids, go = peer.scratch / "survivor", peer.scratch / "go"
    text = f"echo $$ >> {shlex.quote(str(pids))}; until [ -e {shlex.quote(str(go))} ]; do sleep 0.05; done; exit 7"
    key = peer.start(text)
    pid = until(lambda: _first_pid(pids))
    if pid is None:
        return None, None
    for manager in peer.manager():
        os.kill(manager, signal.SIGKILL)
    time.sleep(1.0)
    survives = is_alive(pid)
    peer.revive()
    go.touch()
    until(lambda: None if is_alive(pid) else True, 0.02, 5.0)
    known = survives and until(lambda: peer.code(key), 0.05, 3.0) == 7
    started_again = len(pids.read_text().split()) > 1
    _end(pid)
    return survives, bool(known) and not started_again


def _first_pid(path: Path) -> int | None:
    try:
        return int(path.read_text().split()[0])
    except (OSError, IndexError, ValueError):
        return None


def _end(pid: int) -> None:
    if is_alive(pid):
        os.kill(pid, signal.SIGKILL)
