"""An instance whose old events were dropped."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import holdfast
from tests.support import eventually


def prune(home: Path, keep: int = 5) -> int:
    """Have all but a few events dropped. The number of the oldest one that is left."""
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text(f"max_events = {keep}\n")
    with holdfast.connect() as hf:
        for count in range(20):
            hf.publish("old.x", {"count": count})
        os.kill(hf.status()["pid"], signal.SIGKILL)
        eventually(lambda: first_seq(hf) > 10)
        return first_seq(hf)


def first_seq(hf: holdfast.Client, since: int | None = None) -> int:
    with hf.events("**", since=since) as events:
        return int(next(events)["seq"])
