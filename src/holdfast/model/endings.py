"""How a process ended, in words."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

from holdfast.model import loose
from holdfast.model.fencing import line


def how_it_ended(data: Mapping[str, Any]) -> str:
    """From the data of a completion: `completed normally (exit code 0)`. What nobody knows is said to be unknown.

    A code other than 0 is a failure unless the data say that it `succeeded`.
    """
    reason, by = loose.text(data.get("reason")), line(loose.text(data.get("killed_by")), 60)
    match reason:
        case "exited" if data.get("exit_code") == 0:
            return "completed normally (exit code 0)"
        case "exited" if data.get("succeeded") is True:
            return f"completed normally ({_status(data)})"
        case "exited":
            return f"failed ({_status(data)})"
        case "signaled":
            return f"was ended by a signal ({_status(data)})"
        case "killed":
            return f"was killed{f' by {by}' if by else ''} ({_status(data)})"
        case "deadline":
            return f"was ended at its deadline ({_status(data)})"
        case "oom":
            return f"ran out of memory and was ended ({_status(data)})"
        case "lost":
            return "is lost; its exit code is unknown"
        case "failed_start":
            return "could not be started"
        case _:
            return f"ended ({_status(data)})"


def _status(data: Mapping[str, Any]) -> str:
    code, number = loose.whole(data.get("exit_code"), -1), loose.whole(data.get("signal"))
    if code >= 0:
        return f"exit code {code}"
    return f"signal {_signal_name(number)}" if number else "exit code unknown"


def _signal_name(number: int) -> str:
    try:
        return f"{number}, {signal.Signals(number).name}"
    except ValueError:
        return str(number)
