"""Progress notices: at an interval, the new output of a process; nothing when there is none. No I/O.

The first check is one interval after the start. A late check reports everything at once, and the next one is an
interval after it: two are never closer. Output from while the daemon was down is notified once, not once for each
interval. When the clock is set back, the next check is at most one interval away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.model.notices import lenient
from holdfast.records import Struct, field


class Progress(Struct, frozen=True):
    """The output of one process that was notified. A new one is due at once and has notified nothing."""

    next_at: float = 0.0
    notified: dict[str, int] = field(default_factory=dict)
    """For each stream, the offset up to which its log was notified."""

    def to_json(self) -> dict[str, Any]:
        return {"next_at": self.next_at, "told": self.notified}

    @classmethod
    def from_json(cls, value: object) -> Progress:
        """Never fails: an invalid part becomes that of a new one."""
        fields = lenient.table(value)
        return cls(lenient.moment(fields.get("next_at")) or 0.0, lenient.counts(fields.get("told")))


class OutputSpan(Struct, frozen=True):
    """New output of a stream: the bytes from `offset` up to `end`, which is excluded."""

    offset: int
    end: int


class NewOutput(Struct, frozen=True):
    """The new output that is to be notified now."""

    spans: dict[str, OutputSpan]
    """Of the streams with new output."""

    @property
    def new_bytes(self) -> int:
        return sum(span.end - span.offset for span in self.spans.values())


def begin(now: float, interval: float, ends: Mapping[str, int] | None = None) -> Progress:
    """At the start of a run, whose streams may have output of earlier runs."""
    return Progress(now + interval, dict(ends or {}))


def checked(
    progress: Progress, ends: Mapping[str, int], now: float, interval: float
) -> tuple[Progress, NewOutput | None]:
    """After a check of the ends of the streams. Before `next_at` only a clock that was set back has an effect."""
    next_at = min(progress.next_at, now + interval)
    if now < next_at:
        return Progress(next_at, progress.notified), None
    reached = {stream: max(progress.notified.get(stream, 0), end) for stream, end in ends.items()}
    spans = {stream: OutputSpan(progress.notified.get(stream, 0), end) for stream, end in reached.items()}
    spans = {stream: span for stream, span in spans.items() if span.end > span.offset}
    return Progress(now + interval, {**progress.notified, **reached}), NewOutput(spans) if spans else None
