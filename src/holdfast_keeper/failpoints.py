"""Failpoints: places in the code where a test can kill the process with SIGKILL, and a wall clock that it can set.

`HOLDFAST_DIE_AT` names a failpoint, `HOLDFAST_DIE_MARK` a file that does not exist yet. The first process that reaches
the failpoint creates the file and kills itself. Without the variables a failpoint costs one comparison.

`HOLDFAST_CLOCK` names a file with the seconds to add to the wall clock; it may change, or not exist, at any time.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

_DIE_AT = os.environ.get("HOLDFAST_DIE_AT")
_CLOCK = os.environ.get("HOLDFAST_CLOCK")


def reach(point: str) -> None:
    if point == _DIE_AT:
        _die_once(os.environ["HOLDFAST_DIE_MARK"])


def _die_once(mark: str) -> None:
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


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
