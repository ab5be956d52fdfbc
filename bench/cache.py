"""Where the peers and the compiled child stay between runs."""

from __future__ import annotations

import os
from pathlib import Path


def cached(name: str) -> Path:
    """The path of that name in the cache directory, which is there afterwards."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    directory = Path(base) / "holdfast-bench"
    directory.mkdir(parents=True, exist_ok=True)
    return directory / name
