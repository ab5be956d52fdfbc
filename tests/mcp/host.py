"""A program that a model works in: starts the server, and calls its tools by the official client."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mcp import types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.tools.model import checked

#: As the client names them: the handshake of all releases up to 2025-11-25, and what came after it.
OLD, NEW = "legacy", "2026-07-28"
#: A start of the server on a busy machine.
PATIENCE = 60.0


class Host:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        return envelope(await self.client.call_tool(name, arguments))

    async def terminal(self, command: str, /, **arguments: Any) -> dict[str, Any]:
        return await self.call("terminal", command=command, **arguments)

    async def process(self, action: str, /, **arguments: Any) -> dict[str, Any]:
        return await self.call("process", action=action, **arguments)

    async def background(self, command: str, /, **arguments: Any) -> str:
        """The id of a process in the background."""
        made = await self.terminal(command, background=True, **arguments)
        assert made["status"] == "running", made
        return str(made["session_id"])


def envelope(result: types.CallToolResult) -> dict[str, Any]:
    """The answer, once both of its forms have been seen to say the same, in the one shape."""
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    made = checked(content.text)
    assert result.structured_content == made
    assert result.is_error is made["is_error"]
    assert content.text == json.dumps(made, ensure_ascii=False, separators=(",", ":"))
    return made


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "holdfast", "mcp", *arguments]


@asynccontextmanager
async def stdio(
    *arguments: str, mode: str = OLD, env: Mapping[str, str] | None = None, **options: Any
) -> AsyncIterator[Host]:
    """A host whose server runs beside it. `env` comes on top of the test's environment."""
    program, *words = command(*arguments)
    parameters = StdioServerParameters(command=program, args=words, env={**os.environ, **(env or {})})
    async with Client(stdio_client(parameters), mode=mode, read_timeout_seconds=PATIENCE, **options) as client:
        yield Host(client)
