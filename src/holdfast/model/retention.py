"""Which ended processes may be forgotten."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.model.ids import ProcessId
from holdfast.model.lifecycle import Ended
from holdfast.model.process import Process


def may_go(processes: Iterable[Process], now: float, keep: float, at_most: int, floor: float) -> list[ProcessId]:
    """Ended for longer than `keep`, or beyond the `at_most` newest; never one that ended less than `floor` seconds ago.

    A process whose descendants still write is not finished, however long ago it ended.
    """
    ended = sorted(((_known_at(process), process.id) for process in processes if process.output_closed), reverse=True)
    return [
        process_id
        for place, (at, process_id) in enumerate(ended)
        if now - at >= floor and (place >= at_most or now - at >= keep)
    ]


def _known_at(process: Process) -> float:
    assert isinstance(process.state, Ended)
    return process.state.known_at
