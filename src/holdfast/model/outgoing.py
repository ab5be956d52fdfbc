"""What is on its way to a sink."""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.model.notices import Notice
from holdfast.model.sinking import Standing


class Outgoing(NamedTuple):
    """A notice for a sink, as it is kept."""

    seq: int
    sink: str
    key: str
    body: dict[str, Any]
    """The notification object."""
    at: float
    due_at: float
    attempts: int = 0
    last_error: str | None = None
    dead_at: float | None = None


class Settled(NamedTuple):
    """What came of a try, to be written in the transaction of the event that tells of it."""

    row: Outgoing
    standing: Standing
    at: float


def body_of(notice: Notice) -> dict[str, Any]:
    return {
        "id": notice.id,
        "key": notice.key,
        "kind": notice.kind,
        "process": notice.process,
        "session": notice.session,
        "origin": notice.origin,
        "at": notice.at,
        "data": notice.data,
    }
