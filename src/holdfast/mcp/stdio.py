"""`holdfast mcp`: one client, on stdin and stdout. It ends with its client, and leaves background processes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from io import TextIOWrapper
from typing import Any, cast

import anyio
from mcp import types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError

from holdfast.client import launch
from holdfast.mcp.calls import Calls, ToolKey, tool_pool
from holdfast.mcp.peers import stdio_peers
from holdfast.mcp.push import StdioPush
from holdfast.mcp.server import HoldfastServer
from holdfast.tools.aio import ToolPool

#: An escape, as a whole: a pair of halves, one half, or any other.
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][\da-fA-F]{2}(\\u[dD][c-fC-F][\da-fA-F]{2})?|(u[dD][c-fC-F][\da-fA-F]{2})|.)")
#: Calls under way when the client goes end within this time, or go on in the background.
_CLOSE_TIMEOUT = 0.7


async def serve(
    session: str | None,
    call_limit: float | None,
    is_channel: bool = False,
    client: str | None = None,
    with_notices: bool = True,
) -> None:
    """Until the client closes stdin, or SIGTERM or SIGINT. A known `client` has a session for each conversation.

    `with_notices`: results carry pending notices.
    """
    pool = tool_pool(launch.directory()[0])
    push = StdioPush(is_channel)
    calls = Calls(pool, stdio_peers(client, session), push, call_limit, pushes=is_channel or not with_notices)
    await _until_over(_converse(HoldfastServer(calls, is_channel)))
    await _closed(pool, calls, push)
    os._exit(0)  # a thread may still be reading stdin, and nothing ends that


async def _converse(server: HoldfastServer) -> None:
    lines = StdinLines()
    async with stdio_server(stdin=cast(Any, lines)) as (reading, writing):
        lines.answer_error = lambda error: writing.send(SessionMessage(error))
        await server.run(reading, writing, server.create_initialization_options())


async def _until_over(work: object) -> None:
    """Until the conversation is over. A thread that still reads stdin is not waited for."""
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    task = asyncio.ensure_future(work)  # type: ignore[call-overload]
    stopped = asyncio.ensure_future(over.wait())
    await asyncio.wait([task, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if task.done():
        task.result()


async def _closed(pool: ToolPool[ToolKey], calls: Calls, push: StdioPush) -> None:
    try:
        async with asyncio.timeout(_CLOSE_TIMEOUT):
            await push.close()
            await pool.close()
            await calls.settle(_CLOSE_TIMEOUT)
    except TimeoutError:
        pass


def without_surrogates(line: str) -> str:
    return _ESCAPE.sub(_whole, line) if "\\ud" in line or "\\uD" in line else line


def _whole(found: re.Match[str]) -> str:
    escape = found.group()
    is_half = found.group(2) is not None or (len(escape) == 6 and escape[2] in "dD" and found.group(1) is None)
    return "\\ufffd" if is_half and escape[1] == "u" else escape


def protocol_error(line: str) -> types.JSONRPCError | None:
    """The answer to a line that is no message of the protocol; None for one that is."""
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as wrong:
        if wrong.errors(include_input=False, include_url=False)[0]["type"] == "json_invalid":
            return _error(None, types.PARSE_ERROR, "this line is no JSON")
        return _invalid_request(_loaded(line))
    if isinstance(message, types.JSONRPCNotification) and "id" in (_loaded(line) or ()):
        return _error(None, types.INVALID_REQUEST, "an id is a text or a whole number")
    return None


def _loaded(line: str) -> dict[str, Any] | None:
    """The object; None for anything else, and for one that Python does not read, such as for its long numbers."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _invalid_request(found: dict[str, Any] | None) -> types.JSONRPCError:
    """With the id of the request, unless it was an answer to a request of ours."""
    number = found.get("id") if found and ("method" in found or not found.keys() & {"result", "error"}) else None
    is_usable = isinstance(number, (int, str)) and not isinstance(number, bool)
    what = "no message of JSON-RPC 2.0: `method` is a text, `params` an object"
    return _error(number if is_usable else None, types.INVALID_REQUEST, what)


def _error(number: int | str | None, code: int, what: str) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=number, error=types.ErrorData(code=code, message=what))


class StdinLines:
    """What the SDK's stdio transport reads in place of stdin. `answer_error` answers a line that is no message.

    Unpaired surrogates, at which the SDK stops reading, become U+FFFD; it would ignore what is no message.
    """

    def __init__(self) -> None:
        # A thread may read from it until the process ends, so it is never closed.
        self._file: Any = anyio.wrap_file(TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace"))
        self.answer_error: Callable[[types.JSONRPCError], Awaitable[None]] | None = None

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._file:
            if not line.strip():
                continue
            whole = without_surrogates(line)
            if self.answer_error is None or (wrong := protocol_error(whole)) is None:
                yield whole
            else:
                await self.answer_error(wrong)
