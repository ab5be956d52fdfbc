"""Calls that take long, are given up, make no sense, or come from elsewhere."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import holdfast
from tests.mcp.host import NEW, OLD, http, stdio, waiting_for
from tests.support import eventually, is_alive


@pytest.mark.parametrize("mode", [OLD, NEW])
def test_progress_is_notified_while_a_call_lasts(instance: Path, mode: str) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async def use() -> None:
        async with http(mode) as host:
            arguments = {"command": "echo first; echo token=ghp_0123456789abcdefghijklmnopqrstuvwxyz; sleep 4.5"}
            await host.client.call_tool("terminal", arguments, progress_callback=hear)

    asyncio.run(use())
    assert len(told) >= 2  # every two seconds, and the command takes longer on a busy machine
    assert 1.9 <= told[0][0] < told[1][0]
    for _, total, message in told:
        assert total is None and message is not None
        assert message.startswith("running for ") and "token=" in message and "ghp_" not in message


def test_a_call_is_answered_before_the_client_gives_up(instance: Path) -> None:
    async def use() -> None:
        async with stdio("--call-limit", "1.5") as host:
            begun = time.monotonic()
            made = await host.terminal("echo begun; sleep 300", timeout=100)
            assert time.monotonic() - begun < 30
            assert (made["status"], made["reason"]) == ("running", "moved_to_background")
            assert "timeout 100 s was clamped to 1.5 s" in made["note"]
            assert made["offset"] == 6
            id = made["session_id"]
            made = await host.process("wait", session_id=id, timeout=100)
            assert made["status"] == "running" and "clamped to 1.5 s" in made["note"]
            made = await host.process("log", session_id=id, data="bytes", offset=6)
            assert made["output"] == ""
            await host.process("kill", session_id=id)

    asyncio.run(use())


@pytest.mark.parametrize(("name", "seconds"), [("claude-code", 180), ("another", 50)])
def test_clients_that_wait_longer_may(instance: Path, name: str, seconds: int) -> None:
    from mcp import types

    async def use() -> None:
        async with http(client_info=types.Implementation(name=name, version="1")) as host:
            (tool, _) = (await host.client.list_tools()).tools
            assert f"at most {seconds})" in tool.input_schema["properties"]["timeout"]["description"]

    asyncio.run(use())


def _waits(process_id: str) -> bool:
    """Whether a call of the tool `process` that waits for it has begun."""
    with holdfast.connect() as hf:
        begun = [(event.get("action"), event.get("id")) for event in hf.events("tool.start")]
        return ("wait", process_id) in begun


@pytest.mark.parametrize("mode", [OLD, NEW])
def test_a_call_that_is_given_up_ends_its_command_and_no_other(instance: Path, tmp_path: Path, mode: str) -> None:
    pids = tmp_path / "pids"

    async def use() -> None:
        async with http(mode) as host:
            other = await host.background("sleep 300")
            call = asyncio.create_task(host.terminal(f"echo $$ > {pids}; sleep 300"))
            await asyncio.to_thread(eventually, lambda: pids.exists() and pids.read_text().strip())
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            begun = time.monotonic()
            await asyncio.to_thread(eventually, lambda: not is_alive(int(pids.read_text())))
            assert time.monotonic() - begun < 30
            assert (await host.process("poll", session_id=other))["status"] == "running"
            waiting = asyncio.create_task(host.process("wait", session_id=other))
            await asyncio.to_thread(eventually, lambda: _waits(other))
            waiting.cancel()
            assert (await host.process("kill", session_id=other))["status"] == "ended"

    asyncio.run(use())


_BAD: list[tuple[str, Any]] = [
    ("terminal", {}),
    ("terminal", {"command": 7, "timeout": "soon"}),
    ("terminal", {"command": "true", "workdir": ["a"]}),
    ("terminal", {"command": "true", "session": {"a": 1}}),
    ("process", {"action": "dance"}),
    ("process", {"action": "poll", "session_id": "proc_000000000000"}),
    ("process", {"action": "log", "session_id": {"x": None}}),
    ("nothing", {"a": 1}),
    ("", {}),
]


def test_bad_arguments_are_answered_in_the_one_shape(instance: Path) -> None:
    async def use() -> None:
        async with http() as host:
            for name, arguments in _BAD:
                made = await host.call(name, **arguments)
                assert made["is_error"], (name, arguments, made)

    asyncio.run(use())


def test_only_handles_open_other_sessions(instance: Path) -> None:
    async def use() -> None:
        async with http() as host, http() as other:
            id = await host.background("sleep 300")
            assert host.session is not None and await other.process("list")
            assert (await other.process("poll", session_id=id))["status"] == "not_found"
            for named in ("default", "chat-42", "mcp-", host.session[:-1], host.session.upper(), 7):
                made = await other.process("poll", session_id=id, session=named)
                assert (made["status"], made["reason"]) == ("not_found", "unknown_session")
            assert (await other.process("poll", session_id=id, session=host.session))["status"] == "running"
            await host.process("kill", session_id=id)

    asyncio.run(use())


def test_a_later_server_goes_on_with_the_handle(instance: Path) -> None:
    async def use() -> None:
        async with stdio() as host:
            id = await host.background("sleep 1; echo done", notify_on_complete=True)
        async with http() as later:
            made = await later.process("wait", session_id=id, session=host.session)
            assert (made["status"], made["output"]) == ("ended", "done\n")

    asyncio.run(use())


def test_the_session_can_be_named(instance: Path) -> None:
    async def use() -> None:
        async with stdio("--session", "chat-1", env={"HOLDFAST_SESSION": "other"}) as host:
            made = await host.terminal("echo $HOLDFAST_SESSION")
            assert (made["session"], made["output"]) == ("chat-1", "chat-1\n")

    asyncio.run(use())


def test_notices_ride_once(instance: Path, tmp_path: Path) -> None:
    async def use() -> None:
        async with http() as host:
            id = await host.background(f"{waiting_for(tmp_path / 'go')} echo finished", notify_on_complete=True)
            (tmp_path / "go").touch()
            with holdfast.connect(session=host.session) as client:
                eventually(lambda: client.inbox())
            made = await host.terminal("true")
            assert len(made["notices"]) == 1 and id in made["notices"][0]
            assert "notices" not in await host.terminal("true")

    asyncio.run(use())


def test_a_daemon_that_is_killed_does_not_end_the_conversation(home: Path) -> None:
    async def use() -> None:
        async with stdio() as host:
            await host.terminal("true")
            with holdfast.connect() as client:
                pid = client.status()["pid"]
                call = asyncio.create_task(host.terminal("sleep 2; echo survived"))
                await asyncio.to_thread(eventually, client.ps)
            os.kill(pid, signal.SIGKILL)
            made = await call
            assert made["output"] == "survived\n" or made["is_error"], made
            assert (await host.terminal("echo next"))["output"] == "next\n"

    asyncio.run(use())
