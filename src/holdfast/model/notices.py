"""What a session is told of: one notice to one session."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from holdfast.model.ids import ProcessId

Kind = Literal[
    "completion",
    "watch_match",
    "watch_disabled",
    "watch_overflow_tripped",
    "watch_overflow_released",
    "progress",
    "ready",
    "stalled",
    "deadline",
]


@dataclass(frozen=True, slots=True)
class Notice:
    key: str
    kind: Kind
    process: ProcessId | None
    session: str
    at: float
    origin: dict[str, Any] | None = None
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"note_{sha256(self.key.encode()).hexdigest()[:12]}"
