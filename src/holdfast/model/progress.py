"""Progress: every so often, what a process has written since the last time; nothing when it wrote nothing. No I/O.

What the rule leaves open, and what is done: the first look is one interval after the start. A look that comes late
reports all at once, and the next one is an interval after it: two are never closer. What was missed while the daemon
was down is notified once, not once for each interval. When the clock is set back, the next look is one interval away at
most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from holdfast.model import loose


@dataclass(frozen=True, slots=True)
class Progress:
    """What was notified of one process. A new one is due at once and has notified nothing."""

    next_at: float = 0.0
    notified: dict[str, int] = field(default_factory=dict)
    """For each stream, up to where its log was notified."""

    def to_json(self) -> dict[str, Any]:
        return {"next_at": self.next_at, "told": self.notified}

    @classmethod
    def from_json(cls, value: object) -> Progress:
        """Never fails: what makes no sense is that of a new one."""
        said = loose.table(value)
        return cls(loose.moment(said.get("next_at")) or 0.0, loose.counts(said.get("told")))


class OutputSpan(NamedTuple):
    """New output of a stream: the bytes from `offset` to before `end`."""

    offset: int
    end: int


class NewOutput(NamedTuple):
    """The new output that is to be notified now."""

    spans: dict[str, OutputSpan]
    """Of the streams that have something new."""

    @property
    def new_bytes(self) -> int:
        return sum(span.end - span.offset for span in self.spans.values())


def begin(now: float, interval: float, ends: Mapping[str, int] | None = None) -> Progress:
    """At the start of a process, whose streams may have something of earlier runs."""
    return Progress(now + interval, dict(ends or {}))


def looked(
    progress: Progress, ends: Mapping[str, int], now: float, interval: float
) -> tuple[Progress, NewOutput | None]:
    """After a look at how far the streams reach. Before its time nothing happens, but for a clock that was set back."""
    next_at = min(progress.next_at, now + interval)
    if now < next_at:
        return Progress(next_at, progress.notified), None
    reached = {stream: max(progress.notified.get(stream, 0), end) for stream, end in ends.items()}
    spans = {stream: OutputSpan(progress.notified.get(stream, 0), end) for stream, end in reached.items()}
    spans = {stream: span for stream, span in spans.items() if span.end > span.offset}
    return Progress(now + interval, {**progress.notified, **reached}), NewOutput(spans) if spans else None
