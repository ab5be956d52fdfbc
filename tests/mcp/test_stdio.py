"""`holdfast mcp` with the official client, in the newest protocol and in that of the handshake."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from mcp import types

from tests.mcp.deeds import use_everything
from tests.mcp.host import NEW, OLD, stdio


@pytest.mark.parametrize("mode", [OLD, NEW])
def test_every_tool_and_action(instance: Path, mode: str) -> None:
    async def use() -> None:
        async with stdio(mode=mode) as host:
            _check_declared((await host.client.list_tools()).tools)
            await use_everything(host)

    asyncio.run(use())


def _check_declared(tools: list[types.Tool]) -> None:
    assert [tool.name for tool in tools] == ["terminal", "process"]
    for tool in tools:
        hints = tool.annotations
        assert tool.title and tool.description and hints is not None
        assert (hints.read_only_hint, hints.destructive_hint) == (False, True)
        assert (hints.idempotent_hint, hints.open_world_hint) == (False, True)
        assert tool.output_schema is not None
        assert tool.output_schema["required"] == ["status", "reason", "next", "is_error"]
        assert "session" in tool.input_schema["properties"]
        assert "at most 50" in tool.input_schema["properties"]["timeout"]["description"]
