"""Tools of MCP servers: each server of the configuration is started with the agent, and ends with it."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from holdfast.extras import install_hint
from holdfast.secrets.environment import secret_names
from holdfast.tools.answers import Answer, ToolRefusal, answer

if TYPE_CHECKING:
    from mcp import Client

_OPEN_TIMEOUT = 30.0
_CALL_TIMEOUT = 300.0
_LONGEST_ANSWER = 30_000
_LONGEST_DESCRIPTION = 2000
_MOST_TOOLS = 200
_BAD = re.compile(r"[^A-Za-z0-9_-]")


class McpServer:
    """One server. `trouble` says why its tools are missing; None where they are there."""

    def __init__(self, name: str, table: Mapping[str, Any]) -> None:
        self.name = name
        self._table = table
        self.trouble: str | None = "not started"
        self.schemas: dict[str, dict[str, Any]] = {}
        self._names: dict[str, str] = {}
        self._client: Client | None = None
        self._is_over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Returns when its tools are known, or `trouble` says why not."""
        is_ready = asyncio.Event()
        self._task = asyncio.create_task(self._serve(is_ready))
        try:
            async with asyncio.timeout(_OPEN_TIMEOUT):
                await is_ready.wait()
        except TimeoutError:
            self.trouble = f"did not answer within {_OPEN_TIMEOUT:g} s"

    async def close(self) -> None:
        self._is_over.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=5.0)
            self._task.cancel()

    async def _serve(self, is_ready: asyncio.Event) -> None:
        """Opens and closes it in one task, as the SDK demands."""
        try:
            async with AsyncExitStack() as stack:
                self._client = await stack.enter_async_context(_client(self._table))
                await self._list()
                self.trouble = None
                is_ready.set()
                await self._is_over.wait()
        except asyncio.CancelledError:
            raise
        except BaseException as failed:  # noqa: BLE001 - groups of errors of several libraries
            self.trouble = " ".join(f"{type(failed).__name__}: {failed}".split())[:200]
        finally:
            self._client = None
            is_ready.set()

    async def _list(self) -> None:
        assert self._client is not None
        cursor: str | None = None
        while True:
            page = await self._client.list_tools(cursor=cursor)
            for tool in page.tools:
                name = _BAD.sub("_", f"{self.name}__{tool.name}")[:64]
                if name in self._names or len(self._names) >= _MOST_TOOLS:
                    continue
                self._names[name] = tool.name
                self.schemas[name] = {
                    "type": "function",
                    "function": {
                        "name": name,
                        "description": (tool.description or tool.name)[:_LONGEST_DESCRIPTION],
                        "parameters": tool.input_schema or {"type": "object", "properties": {}},
                    },
                }
            cursor = page.next_cursor
            if cursor is None:
                return

    async def call(self, name: str, given: Mapping[str, object]) -> Answer:
        """Raises ToolRefusal."""
        if self._client is None:
            raise ToolRefusal("unreachable", f"the MCP server {self.name} is gone", "do it another way")
        try:
            found = await self._client.call_tool(self._names[name], dict(given), read_timeout_seconds=_CALL_TIMEOUT)
        except asyncio.CancelledError:
            raise
        except Exception as failed:  # noqa: BLE001 - errors of the protocol and of the transport
            what = " ".join(f"{type(failed).__name__}: {failed}".split())[:500]
            raise ToolRefusal("failed", what, "try it another way") from None
        texts = [getattr(block, "text", None) or f"[{block.type}]" for block in found.content]
        whole = "\n".join(texts)
        output = whole[:_LONGEST_ANSWER]
        left = len(whole) - len(output)
        note = f"{left} of {len(whole)} characters are left out" if left else None
        status = "error" if found.is_error else "ok"
        return answer(status, "failed" if found.is_error else "done", output=output, note=note)


def _client(table: Mapping[str, Any]) -> Client:
    try:
        from mcp import Client, StdioServerParameters, stdio_client
    except ImportError:
        raise RuntimeError(f"the MCP SDK is not installed: {install_hint('agent')}") from None
    if isinstance(url := table.get("url"), str):
        return Client(url)
    command, *args = table["command"]
    hidden = secret_names(os.environ)
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    env |= {str(key): str(value) for key, value in (table.get("env") or {}).items()}
    return Client(stdio_client(StdioServerParameters(command=command, args=args, env=env)))
