"""One foreground command is one request: what the client sends, and what the daemon publishes."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.tools import AsyncTools
from tests.support import eventually
from tests.tools.model import Model, Sent


def test_a_foreground_command_is_one_request(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = Sent(monkeypatch)
    answer = model.terminal("echo out; exit 3")
    assert (answer["status"], answer["exit_code"], answer["output"]) == ("ended", 3, "out\n")
    assert sent.of_calls() == ["foreground"]
    assert sent.operations.count("events") == 1 and "publish" not in sent.operations
    with holdfast.connect(model.session) as hf:
        eventually(lambda: not hf.inbox())  # the answer has consumed the completion


def test_a_foreground_command_with_notices_is_two_requests(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    model.background("sleep 0.5", notify_on_complete=True)
    with holdfast.connect(model.session) as hf:
        eventually(hf.inbox)
        sent = Sent(monkeypatch)
        answer = model.terminal("true")
        assert len(answer["notices"]) == 1 and sent.of_calls() == ["foreground", "ack"]
        assert not hf.inbox()
    assert "notices" not in model.terminal("true")


def test_an_older_daemon_is_asked_step_by_step(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = Sent(monkeypatch, unknown="foreground")
    answer = model.terminal("echo out; exit 3")
    assert (answer["status"], answer["exit_code"], answer["output"]) == ("ended", 3, "out\n")
    assert sent.of_calls() == ["foreground", "start", "wait", "logs", "redact", "inbox"]
    moved = model.terminal("echo more; sleep 300", timeout=1.5)
    assert (moved["reason"], moved["output"]) == ("moved_to_background", "more\n")
    model.process("kill", moved["session_id"])


def test_both_ways_give_the_same_answer(model: Model, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands = ["printf 'no newline'", "seq 20000", "printf '\\xff\\xe2\\x82'", "printf '1%%\\r2%%\\r3%%\\n'", "true"]
    one = [model.terminal(command) for command in commands]
    Sent(monkeypatch, unknown="foreground")
    several = [model.terminal(command) for command in commands]
    for first, second in zip(one, several, strict=True):
        keys = ("status", "reason", "exit_code", "next", "omitted_bytes", "folded")
        assert [first.get(key) for key in keys] == [second.get(key) for key in keys]
        assert first["output"].replace(first["session_id"], "ID") == second["output"].replace(
            second["session_id"], "ID"
        )


def test_a_request_that_is_repeated_after_a_killed_daemon_is_the_same_command(home: Path, tmp_path: Path) -> None:
    async def main() -> dict[str, Any]:
        async with AsyncTools("repeated", cwd=tmp_path) as tools:
            command = f"echo $$ >> {tmp_path}/runs; until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo done"
            call = asyncio.create_task(tools.answer("terminal", {"command": command}))
            await asyncio.to_thread(eventually, lambda: (tmp_path / "runs").exists())
            with holdfast.connect() as hf:
                os.kill(hf.status()["pid"], signal.SIGKILL)
            (tmp_path / "go").touch()
            return await call

    answer = asyncio.run(main())
    assert (answer["status"], answer["exit_code"], answer["output"]) == ("ended", 0, "done\n")
    assert len((tmp_path / "runs").read_text().split()) == 1
    with holdfast.connect("repeated") as hf:
        eventually(lambda: not hf.inbox())
        (process,) = hf.ps(all=True)
        completed = eventually(lambda: [one for one in hf.events("tool.complete") if one["tool"] == "terminal"])
        assert process.started_at is not None and process.ended_at is not None
        assert completed[-1]["duration"] >= process.ended_at - process.started_at, "with the time before the crash"


def test_tool_calls_are_events(model: Model) -> None:
    with holdfast.connect() as hf:
        ended = model.terminal("exit 3")["session_id"]
        moved = model.terminal("sleep 300", timeout=0.2)["session_id"]
        model.process("kill", moved)

        def told() -> list[tuple[Any, ...]]:
            found = [event for event in hf.events("tool.*") if event["session"] == model.session]
            return [(event["type"], event["tool"], event.get("id"), event.get("reason")) for event in found]

        expected = [
            ("tool.start", "terminal", ended, None),
            ("tool.complete", "terminal", ended, "exited"),
            ("tool.start", "terminal", moved, None),
            ("tool.progress", "terminal", moved, "moved_to_background"),
            ("tool.complete", "terminal", moved, "moved_to_background"),
            ("tool.start", "process", moved, None),
            ("tool.complete", "process", moved, "killed"),
        ]
        eventually(lambda: told() == expected)
