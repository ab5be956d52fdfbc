"""A program that a model works in: starts the server, and calls its tools by the official client."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

import holdfast
from tests.tools.model import checked

#: As the client names them: the handshake of all releases up to 2025-11-25, and what came after it.
OLD, NEW = "legacy", "2026-07-28"
#: A start of the server on a busy machine.
PATIENCE = 60.0


class Host:
    """`passes_handle`: the model passes `session` with every call, once it was told."""

    def __init__(self, client: Client, passes_handle: bool = False) -> None:
        self.client = client
        self.session: str | None = None
        self._passes_handle = passes_handle

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        if self._passes_handle and self.session is not None:
            arguments = {"session": self.session, **arguments}
        made = envelope(await self.client.call_tool(name, arguments))
        self.session = made.get("session", self.session)
        return made

    async def terminal(self, command: str, /, **arguments: Any) -> dict[str, Any]:
        return await self.call("terminal", command=command, **arguments)

    async def process(self, action: str, /, **arguments: Any) -> dict[str, Any]:
        return await self.call("process", action=action, **arguments)

    async def background(self, command: str, /, **arguments: Any) -> str:
        """The id of a process in the background."""
        made = await self.terminal(command, background=True, **arguments)
        assert made["status"] == "running", made
        return str(made["session_id"])


def waiting_for(path: Path) -> str:
    """The begin of a command that goes on when there is such a file."""
    return f"while [ ! -e {path} ]; do sleep 0.05; done;"


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


def open_http() -> tuple[str, dict[str, str]]:
    """Where the test's instance takes MCP over TCP, and the headers with which it lets one in."""
    with holdfast.connect() as client:
        url = client.http("open")["url"]
        token = Path(client.paths.token).read_text().strip()
    return f"{url}/mcp", {"authorization": f"Bearer {token}"}


@asynccontextmanager
async def http(mode: str = OLD, headers: Mapping[str, str] | None = None, **options: Any) -> AsyncIterator[Host]:
    """A host whose server is the daemon."""
    url, key = open_http()
    async with create_mcp_http_client({**key, **(headers or {})}) as requests:
        transport = streamable_http_client(url, http_client=requests)
        async with Client(transport, mode=mode, read_timeout_seconds=PATIENCE, **options) as client:
            yield Host(client, passes_handle=mode == NEW)
