"""Ready when it has been up for a while."""

from __future__ import annotations

import asyncio
import time

from holdfast.model import readiness
from holdfast.model.process import Process

#: The wall clock may be set while we sleep: never for longer than this.
_LONGEST_SLEEP = 30.0


async def until_grown(process: Process) -> None:
    await until_time(readiness.grown_at(process) or 0.0)


async def until_time(due: float) -> None:
    """Until the wall clock shows this time or a later one."""
    while (left := due - time.time()) > 0:  # noqa: ASYNC110 - nobody can tell us what time it is but the clock
        await asyncio.sleep(min(left, _LONGEST_SLEEP))
