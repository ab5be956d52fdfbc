"""Progress: what is new, at most once in an interval, and nothing when nothing is."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import holdfast


@pytest.mark.full
def test_new_output_is_reported_once(home: Path) -> None:
    with holdfast.connect("a") as a:
        process = a.run("while read line; do echo got $line; done", stdin=True, check_interval=1)
        a.send(process.id, "one")
        (first,) = a.inbox(wait=10)
        assert (first.kind, first.data["output"], first.data["new_bytes"]) == ("progress", "got one", 8)
        a.ack(first)
        a.send(process.id, "two")
        (second,) = a.inbox(wait=10)
        assert (second.data["output"], second.data["offset"], second.data["new_bytes"]) == ("got two", 8, 8)
        assert second.at - first.at >= 0.99
        a.ack(second)
        assert a.inbox(wait=2.5) == []
        os.kill(a.status()["pid"], signal.SIGKILL)
        assert a.inbox(wait=1.5) == []
        a.send(process.id, "three")
        (third,) = a.inbox(wait=10)
        assert third.data["output"] == "got three"
        a.kill(process.id)
