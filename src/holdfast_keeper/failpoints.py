"""Failpoints: places in the code where a test can kill the process with SIGKILL, or make it hang; and a wall clock that
it can set.

`HOLDFAST_DIE_AT` names a failpoint, `HOLDFAST_DIE_MARK` a file that does not exist yet. The first process that reaches
the failpoint creates the file and kills itself. `HOLDFAST_HANG_AT` names a failpoint, `HOLDFAST_HANG_WHILE` a file: a
thread that reaches the failpoint waits there while the file exists, and writes its process id into it. Without the
variables a failpoint costs two comparisons.

`HOLDFAST_CLOCK` names a file with the seconds to add to the wall clock; it may change, or not exist, at any time.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

_DIE_AT = os.environ.get("HOLDFAST_DIE_AT")
_HANG_AT = os.environ.get("HOLDFAST_HANG_AT")
_CLOCK = os.environ.get("HOLDFAST_CLOCK")


def variables() -> dict[str, str]:
    """The variables, for a program with failpoints of its own."""
    return {name: os.environ[name] for name in ("HOLDFAST_DIE_AT", "HOLDFAST_DIE_MARK") if name in os.environ}


def reach(point: str, killed: int | None = None) -> None:
    """Kill this process, or another one."""
    if point == _DIE_AT:
        _die_once(os.environ["HOLDFAST_DIE_MARK"], killed or os.getpid())
    if point == _HANG_AT:
        _hang_while(os.environ["HOLDFAST_HANG_WHILE"])


def _die_once(mark: str, killed: int) -> None:
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(killed, signal.SIGKILL)


def _hang_while(mark: str) -> None:
    try:
        with open(mark, "r+") as file:
            file.write(f"{os.getpid()}\n")
    except FileNotFoundError:
        return
    while os.path.exists(mark):
        time.sleep(0.01)


def _shifted(real: Callable[[], float], path: str) -> Callable[[], float]:
    offset = 0.0

    def shifted() -> float:
        nonlocal offset
        try:
            with open(path) as file:
                offset = float(file.read())
        except (OSError, ValueError):
            pass  # no file, or no descriptor left to read it: as before
        return real() + offset

    return shifted


if _CLOCK is not None:
    time.time = _shifted(time.time, _CLOCK)
