"""Secrets of the host that starts the server: in its memory, and nowhere that a command or a model could see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.mcp.wire import Wire
from tests.secrets.canaries import canaries, needles


def test_thirty_canaries_are_never_visible(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = canaries("mcp")
    env = {name: value for name, value in env.items() if name not in ("HOLDFAST_URL", "HOLDFAST_TOKEN")}
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with Wire() as wire:
        wire.greet("2025-06-18")
        said = wire.ask("tools/call", name="terminal", arguments={"command": f"env; echo {env['PGPASSWORD']}"})
        shown = Path(f"/proc/{wire.process.pid}/environ").read_bytes()
        process = said["result"]["structuredContent"]["session_id"]
        resource = wire.ask("resources/read", uri=f"holdfast://process/{process}/log")
    for name, needle in needles(env).items():
        assert needle not in shown, name
        assert needle.decode() not in json.dumps([said, resource]), name
    assert "[redacted]" in resource["result"]["contents"][0]["text"]
    assert "[redacted]" in said["result"]["structuredContent"]["output"], "known, though it was taken away"
