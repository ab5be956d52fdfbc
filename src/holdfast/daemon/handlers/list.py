"""list: the processes, running ones or all."""

from __future__ import annotations

import math
from bisect import bisect_right

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.errors import BadValue
from holdfast.model.ids import is_id
from holdfast.model.process import HeldProcess
from holdfast.ops.processes import List

#: How old what they use may be, in seconds.
_USED = 1.0


async def handle(context: DaemonContext, call: Call, ask: List) -> Message:
    session, task = context.current_name(ask.session), ask.task
    processes = context.registry.shown() if ask.all else context.registry.running()
    chosen = [
        process
        for process in processes
        if (session is None or process.meta.session == session) and (task is None or process.meta.task == task)
    ]
    chosen.sort(key=_place)
    page, cursor = _page(chosen, ask.limit, ask.after)
    used = _USED if ask.used else None
    return {"processes": await context.show_fresh(page, used=used), "next": cursor}


def _place(process: HeldProcess) -> tuple[float, str]:
    return process.meta.requested_at, process.id


def _page(processes: list[HeldProcess], limit: int | None, after: str | None) -> tuple[list[HeldProcess], str | None]:
    """Those behind the cursor, as many as are wanted, and where the next page begins if there is one."""
    if after is not None:
        processes = processes[bisect_right(processes, _read_cursor(after), key=_place) :]
    if limit is None or len(processes) <= limit:
        return processes, None
    last = processes[limit - 1]
    return processes[:limit], f"{last.meta.requested_at!r}_{last.id}"


def _read_cursor(text: str) -> tuple[float, str]:
    """The place it was made of: also when that process is forgotten since."""
    at, _, process_id = text.partition("_")
    try:
        place = float(at)
    except ValueError:
        place = math.nan
    if not math.isfinite(place) or not is_id(process_id):
        raise BadValue("after must be the `next` of an earlier page")
    return place, process_id
