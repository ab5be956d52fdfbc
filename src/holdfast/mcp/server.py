"""The server of the SDK, with what holdfast does for each request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mcp import types
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server

from holdfast.mcp import declared
from holdfast.mcp.calling import NOT_AN_OBJECT, Calls
from holdfast.mcp.peers import Context
from holdfast.version import VERSION


def build(calls: Calls) -> Server[Any]:
    async def list_tools(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=declared.tools(calls.limit(ctx)))

    server: Server[Any] = Server(
        "holdfast",
        title="holdfast",
        version=VERSION,
        instructions=declared.INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=calls.call,
    )
    server.middleware.append(_take_any_arguments)
    return server


async def _take_any_arguments(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Arguments of a wrong kind are answered by the tools, in the one shape, and not by the protocol."""
    if ctx.method == "tools/call" and isinstance(ctx.params, Mapping):
        ctx = replace(ctx, params=_acceptable(ctx.params))
    return await call_next(ctx)


def _acceptable(params: Mapping[str, Any]) -> dict[str, Any]:
    taken = dict(params)
    if not isinstance(taken.get("name"), str):
        taken["name"] = ""
    arguments = taken.get("arguments")
    if arguments is not None and not isinstance(arguments, Mapping):
        taken["arguments"] = {NOT_AN_OBJECT: arguments}
    return taken
