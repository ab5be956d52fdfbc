"""Texts for a model."""

from __future__ import annotations

from typing import Any


def text(notification: dict[str, Any]) -> str:
    data = notification["data"]
    return f"[IMPORTANT: {notification['kind']} of {notification['process']}\nOutput:\n{data.get('output', '')}\n]"
