"""What the bench asks of a manager of processes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

#: In the environment of everything that a bench starts, so that nothing is left behind.
MARK = "HOLDFAST_BENCH_MARK"
_TIMEOUT = 30.0


class Peer(ABC):
    """One manager, in a scratch directory of its own. Command texts are run by bash."""

    name = ""
    #: What is compared: `python` for one that is asked from inside a program, `cli` for one with a client program.
    asked_by = "cli"

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.env = {**os.environ, MARK: str(scratch)}

    def open(self) -> None:
        """Start it, as far as it does not start by itself, and warm it up."""

    def close(self) -> None:
        """End it, with all that it runs."""

    @abstractmethod
    def start(self, text: str) -> str:
        """Start a command; returns what it is called, once the manager knows it."""

    def timed_start(self, text: str) -> tuple[str, float]:
        began = time.perf_counter()
        key = self.start(text)
        return key, time.perf_counter() - began

    @abstractmethod
    def wait(self, key: str) -> int | None:
        """Until the manager knows of the end; the exit code."""

    @abstractmethod
    def count(self) -> int:
        """How many commands it lists."""

    @abstractmethod
    def kill(self, key: str) -> None:
        """End a command, however it takes it."""

    @abstractmethod
    def manager(self) -> list[int]:
        """The pids of the manager itself."""

    def revive(self) -> None:
        """What a user does after the manager died."""

    @abstractmethod
    def code(self, key: str) -> int | None:
        """The exit code of a command as far as the manager knows it now."""

    def call(self, *argv: str) -> str:
        done = subprocess.run(
            argv, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=60
        )
        return done.stdout


def until(condition: Callable[[], T | None], pause: float = 0.001, timeout: float = _TIMEOUT) -> T | None:
    """The condition's first value that is not None; None when there is none in time."""
    end = time.monotonic() + timeout
    while (value := condition()) is None and time.monotonic() < end:
        time.sleep(pause)
    return value


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def marked(mark: str) -> list[int]:
    """All processes that a bench with that mark started."""
    marked = f"{MARK}={mark}".encode()
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as environ:
                if marked in environ.read().split(b"\0") and is_alive(int(name)):
                    found.append(int(name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def end_marked(mark: str) -> None:
    """Kill what is left of a bench."""
    for _ in range(20):
        left = marked(mark)
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.05)
