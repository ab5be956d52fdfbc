"""Failpoints: places in the code where a test can kill the process with SIGKILL, or make it hang.

`HOLDFAST_DIE_AT` names a failpoint, `HOLDFAST_DIE_MARK` a file that does not exist yet. The first process that reaches
the failpoint creates the file and kills itself. `HOLDFAST_HANG_AT` names a failpoint, `HOLDFAST_HANG_WHILE` a file: a
thread that reaches the failpoint waits there while the file exists, and writes its process id into it. Without the
variables a failpoint costs two comparisons.
"""

from __future__ import annotations

import os
import signal
import time

_DIE_AT = os.environ.get("HOLDFAST_DIE_AT")
_HANG_AT = os.environ.get("HOLDFAST_HANG_AT")


def reach(point: str) -> None:
    if point == _DIE_AT:
        _die_once(os.environ["HOLDFAST_DIE_MARK"])
    if point == _HANG_AT:
        _hang_while(os.environ["HOLDFAST_HANG_WHILE"])


def _die_once(mark: str) -> None:
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def _hang_while(mark: str) -> None:
    try:
        with open(mark, "r+") as file:
            file.write(f"{os.getpid()}\n")
    except FileNotFoundError:
        return
    while os.path.exists(mark):
        time.sleep(0.01)
