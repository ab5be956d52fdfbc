"""What the operator hears of. (Those who follow events hear of the change itself.)"""

from __future__ import annotations

from typing import Literal

from holdfast.daemon.logbook import note
from holdfast.model.process import Process

Event = Literal["ready", "not_ready", "stalled", "stall_over", "input_needed"]


def publish(event: Event, process: Process, **data: object) -> None:
    """One turn of events of one process, after it is on disk and shown. Each comes once."""
    note(
        event.replace("_", "-"), process=process.id, **{key: value for key, value in data.items() if value is not None}
    )
