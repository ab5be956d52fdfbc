"""Notices as they come: as log messages for clients that asked for them, or on a channel."""

from __future__ import annotations

import asyncio
import warnings
from pathlib import Path
from typing import Any

from mcp import types

import holdfast
from tests.mcp.host import NEW, http, waiting_for
from tests.mcp.wire import Wire
from tests.support import eventually


class Log:
    def __init__(self, mark: Path | None = None) -> None:
        """`mark` is a file that is made when something was heard."""
        self.heard: list[types.LoggingMessageNotificationParams] = []
        self._mark = mark

    async def __call__(self, params: types.LoggingMessageNotificationParams) -> None:
        self.heard.append(params)
        if self._mark is not None:
            self._mark.touch()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.heard) < count:  # noqa: ASYNC110 - what happens is outside
                await asyncio.sleep(0.02)


def test_log_messages_for_who_asked(instance: Path, tmp_path: Path) -> None:
    log = Log()

    async def use() -> None:
        async with http(logging_callback=log) as host:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                await host.client.set_logging_level("info")
            id = await host.background(f"{waiting_for(tmp_path / 'go')} echo pushed; exit 3", notify_on_complete=True)
            (tmp_path / "go").touch()
            await log.until(1)
            (params,) = log.heard
            assert (params.level, params.logger) == ("warning", "holdfast")
            assert id in params.data and "pushed" in params.data
            made = await host.process("list")  # it was told, not consumed
            assert len(made["notices"]) == 1 and id in made["notices"][0]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                await host.client.set_logging_level("error")
            await host.background(f"{waiting_for(tmp_path / 'again')} echo quiet", notify_on_complete=True)
            (tmp_path / "again").touch()
            assert (await host.process("inbox", timeout=20))["reason"] == "news"
            assert len(log.heard) == 1

    asyncio.run(use())


def test_log_messages_of_the_newest_protocol(instance: Path, tmp_path: Path) -> None:
    log = Log(tmp_path / "heard")

    async def use() -> None:
        async with http(NEW, logging_callback=log, log_level="info") as host:
            id = await host.background(f"{waiting_for(tmp_path / 'go')} echo pushed", notify_on_complete=True)
            await host.terminal(f"touch {tmp_path / 'go'}; {waiting_for(tmp_path / 'heard')} true")
            (params,) = log.heard
            assert params.level == "info" and id in params.data

    asyncio.run(use())


def channel_of(hello: dict[str, Any]) -> Any:
    return hello["capabilities"].get("experimental", {}).get("claude/channel")


def test_channel(instance: Path) -> None:
    with Wire("--channel", "--session", "channel") as wire:
        assert channel_of(wire.greet("2025-11-25")) == {}
        arguments = {"command": "echo on the channel", "background": True, "notify_on_complete": True}
        result = wire.ask("tools/call", name="terminal", arguments=arguments)["result"]
        id = result["structuredContent"]["session_id"]
        message = wire.read()
        assert message["method"] == "notifications/claude/channel"
        assert "on the channel" in message["params"]["content"]
        assert message["params"]["meta"]["kind"] == "completion"
        assert message["params"]["meta"]["process"] == id
        with holdfast.connect(session="channel") as client:
            eventually(lambda: not client.inbox())  # what was sent counts as told
        answer = wire.ask("tools/call", name="process", arguments={"action": "list"})
        assert "notices" not in answer["result"]["structuredContent"]


def test_earlier_notices_are_sent_on_the_channel(instance: Path) -> None:
    with holdfast.connect(session="earlier") as client:
        client.run("echo earlier", notify="any")
        eventually(lambda: client.inbox())
    with Wire("--channel", "--session", "earlier") as wire:
        wire.greet("2025-11-25")
        assert "earlier" in wire.read()["params"]["content"]
