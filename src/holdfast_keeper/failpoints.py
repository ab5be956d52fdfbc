"""Points at which a process of ours can be made to die, so that tests can see that it does not matter.

`HOLDFAST_DIE_AT` names a point and `HOLDFAST_DIE_MARK` a file that must not exist yet; whoever reaches the point
first makes the file and is gone, as after SIGKILL. Without the variables a point costs one comparison.
"""

from __future__ import annotations

import os
import signal

_DIE_AT = os.environ.get("HOLDFAST_DIE_AT")


def reach(point: str) -> None:
    if point == _DIE_AT:
        _die_once(os.environ["HOLDFAST_DIE_MARK"])


def _die_once(mark: str) -> None:
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
