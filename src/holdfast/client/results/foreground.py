"""A command in the foreground: started, waited for and read with one request, where the daemon knows how."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from holdfast.client import calls
from holdfast.client.calls import Ask
from holdfast.client.link import MAX_CUTS, LinkCut
from holdfast.client.process import Process
from holdfast.client.results.notification import Notification
from holdfast.errors import Unsupported

if TYPE_CHECKING:
    from holdfast.client.calls import Call
    from holdfast.client.field_types import RunOptions
    from holdfast.client.launch import ClientState
    from holdfast.wire.frames import Message

#: The daemon answers this long after the time is over, at the latest.
_MARGIN = 660.0


class ForegroundResult(NamedTuple):
    """The process after the call. `shown` and `notices` are None where the daemon (or HTTP) has no such operation."""

    process: Process
    shown: Message | None = None
    """The output for a model: text (secrets masked), start, end, total, omitted, is_folded."""
    notices: list[Notification] | None = None
    """From the inbox; the caller acknowledges them."""


def foreground(
    client: ClientState,
    command: str,
    timeout: float,
    within: float | None,
    shown: tuple[int, int],
    notices: int,
    options: RunOptions,
) -> Call[ForegroundResult]:
    """Start a command and wait until it ends, asks for input or `timeout` is over; `within` counts from the call on.

    `shown` are the characters and tokens of output at most. The id is chosen here, so a repeated request is the same.
    """
    steps = calls.run(client, command, **options)
    start = next(steps)
    begun, cuts, runs_until = time.monotonic(), 0, 0.0
    asked = {**start.arguments, "timeout": timeout, "characters": shown[0], "tokens": shown[1], "notices": notices}
    while True:
        asked_at = time.monotonic()
        left = None if within is None else max(0.0, within - (asked_at - begun))
        given = asked if left is None else {**asked, "within": left}
        try:
            resume = max(0.0, runs_until - asked_at) if runs_until else None
            value, _ = yield Ask("foreground", given, limit=timeout + _MARGIN, may_repeat=False, resume=resume)
        except LinkCut:
            if (now := time.monotonic()) - asked_at > 1.0:
                cuts, runs_until = 0, runs_until or now + timeout  # it runs by now: what is left is a wait
            else:
                cuts += 1
            if cuts > MAX_CUTS:
                raise
        except Unsupported:
            break
        else:
            claimed = [Notification(one) for one in value["notifications"]]
            return ForegroundResult(_started(steps, value), value["shown"], claimed)
    process = _started(steps, (yield start)[0])
    left = timeout if within is None else min(timeout, within - (time.monotonic() - begun))
    waited = yield from calls.wait_for([process.id], timeout=max(left, 0.1), or_input=0.0)
    return ForegroundResult(Process(waited.processes[0].to_json(), process.notes))


def _started(run: Call[Process], answer: Message) -> Process:
    """What the call `run` makes of an answer."""
    try:
        run.send((answer, []))
    except StopIteration as done:
        process: Process = done.value
        return process
    raise AssertionError("run asks once")
