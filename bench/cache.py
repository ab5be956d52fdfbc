"""Where the peers and the compiled child stay between runs."""

from __future__ import annotations

from pathlib import Path

from bench.compare.install import cache


def cached(name: str) -> Path:
    """The path of that name in the cache directory, which is there afterwards."""
    return cache() / name
