"""What a watch finds. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Match:
    """One matching line: where it begins in the log of its stream, where it ends, and its text."""

    stream: str
    offset: int
    end: int
    pattern: str
    output: str
    is_cut: bool = False
