"""Texts for a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def text(notification: dict[str, Any]) -> str:
    data = notification["data"]
    return f"[IMPORTANT: {notification['kind']} of {notification['process']}\nOutput:\n{data.get('output', '')}\n]"


def digest(processes: Sequence[Mapping[str, Any]], now: float, pending: int = 0) -> str:
    if not processes and not pending:
        return ""
    lines = [f"{one['id']} {one['command']}: {one.get('last_line') or ''}" for one in processes]
    return "\n".join([f"[IMPORTANT: {len(processes)} still run; {pending} notifications unread.", *lines, "]"])
