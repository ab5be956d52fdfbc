"""The findings of probes in the daemon's log. (The change itself is an event.)"""

from __future__ import annotations

from typing import Literal

from holdfast.daemon.core.log import note
from holdfast.model.process import HeldProcess

Event = Literal["ready", "not_ready", "stalled", "stall_over", "input_needed"]


def publish(event: Event, process: HeldProcess, **data: object) -> None:
    """One finding about one process, after it is on disk and shown. Each comes once."""
    note(
        event.replace("_", "-"), process=process.id, **{key: value for key, value in data.items() if value is not None}
    )
