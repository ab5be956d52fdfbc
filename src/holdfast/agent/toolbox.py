"""The tools that the model is offered: those of the toolset, and how each call is run. No call raises."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.agent.config import BUILT_IN, FILE_TOOLS, MCP_TOOLS, AgentConfig
from holdfast.agent.file_tools import SCHEMAS, FileTools
from holdfast.agent.mcp_servers import McpServer
from holdfast.client import launch
from holdfast.errors import HoldfastError
from holdfast.tools.answers import Answer, ToolRefusal, answer, of_error, to_text
from holdfast.tools.schemas import PROCESS_SCHEMA, TERMINAL_SCHEMA

if TYPE_CHECKING:
    from holdfast.agent.conversation import ToolCall
    from holdfast.client.aio import AsyncClient
    from holdfast.tools.aio import AsyncTools

#: Calls that change files run one after the other, and not beside others.
_ALONE = frozenset({"write", "edit"})
#: Calls that start a process.
_STARTING = frozenset({"terminal", "search"})


class ToolError(Exception):
    """A call that cannot be run: an unknown tool, or arguments that are no object."""


class ToolState(NamedTuple):
    """A tool of a toolset, for people. `trouble` says why it is not available."""

    name: str
    about: str
    trouble: str | None = None


class ToolOutcome(NamedTuple):
    """The answer to a call. `is_invalid`: the call could not be run."""

    text: str
    status: str
    is_error: bool
    is_invalid: bool = False

    @classmethod
    def of(cls, made: Answer, is_invalid: bool = False) -> ToolOutcome:
        return cls(to_text(made), str(made["status"]), bool(made["is_error"]), is_invalid)


class Toolbox:
    """The tools of one agent. Those of `terminal` and `process` are holdfast's own."""

    def __init__(self, client: AsyncClient, tools: AsyncTools, config: AgentConfig) -> None:
        self._client = client
        self._tools = tools
        self._config = config
        self._files = FileTools(client, config, lambda command: tools.answer("terminal", {"command": command}))
        self._servers = [McpServer(name, table) for name, table in config.mcp.items()]
        self._wanted: tuple[str, ...] = ()

    async def open(self) -> None:
        """Start the MCP servers. Returns when each has answered or failed."""
        await asyncio.gather(*(server.open() for server in self._servers))

    async def close(self) -> None:
        await asyncio.gather(*(server.close() for server in self._servers))

    def choose(self, toolset: str) -> None:
        """Raises BadValue for an unknown one."""
        self._wanted = self._config.tools_of(toolset)

    @property
    def schemas(self) -> list[dict[str, Any]]:
        own = {"terminal": TERMINAL_SCHEMA, "process": PROCESS_SCHEMA, **SCHEMAS}
        found = [own[name] for name in BUILT_IN if name in self._wanted]
        return [*found, *(schema for server in self._chosen_servers() for schema in server.schemas.values())]

    @property
    def states(self) -> list[ToolState]:
        """All tools of the toolset, and why some are missing."""
        found = [
            ToolState(schema["function"]["name"], schema["function"]["description"].split("\n")[0])
            for schema in self.schemas
        ]
        down = [server for server in self._chosen_servers() if server.trouble is not None]
        found += [ToolState(f"mcp:{server.name}", "an MCP server", server.trouble) for server in down]
        known = {*BUILT_IN, MCP_TOOLS, *(f"mcp:{server.name}" for server in self._servers)}
        return found + [ToolState(name, "", "no such tool") for name in self._wanted if name not in known]

    def _chosen_servers(self) -> list[McpServer]:
        return [one for one in self._servers if MCP_TOOLS in self._wanted or f"mcp:{one.name}" in self._wanted]

    def check(self, call: ToolCall) -> dict[str, object]:
        """The arguments of a call. Raises ToolError."""
        names = [schema["function"]["name"] for schema in self.schemas]
        if call.name not in names:
            raise ToolError(f"there is no tool {call.name[:64]!r}; the tools are {', '.join(names[:40])}")
        try:
            given = json.loads(call.arguments or "{}")
        except (ValueError, RecursionError):
            raise ToolError("the arguments are not JSON") from None
        if not isinstance(given, dict):
            raise ToolError("the arguments must be an object")
        return given

    def process_id(self, call: ToolCall) -> str | None:
        """The id for the process that a call will start; None where it starts none."""
        return launch.new_id() if call.name in _STARTING else None

    async def run(self, call: ToolCall, given: Mapping[str, object], process_id: str | None) -> ToolOutcome:
        """The answer. A cancelled call raises CancelledError, once its command was ended."""
        is_reported = call.name not in ("terminal", "process", "search")  # those are reported by holdfast.tools
        begun = time.monotonic()
        if is_reported:
            await self._publish("tool.start", tool=call.name)
        made = answer("interrupted", "cancelled")
        try:
            made = await self._made(call.name, given, process_id)
        except (ToolRefusal, HoldfastError) as refused:
            made = of_error(refused)
            if call.name in FILE_TOOLS and made["status"] == "not_found":
                made["next"] = "check the path, with terminal: ls"
        except asyncio.CancelledError:
            raise
        except Exception as failed:  # noqa: BLE001 - the model gets an answer after any error
            made = of_error(failed)
        finally:
            if is_reported:
                taken = round(time.monotonic() - begun, 3)
                ended = {"status": made["status"], "reason": made["reason"], "duration": taken}
                await asyncio.shield(self._publish("tool.complete", tool=call.name, **ended))
        return ToolOutcome.of(made)

    async def _made(self, name: str, given: Mapping[str, object], process_id: str | None) -> Answer:
        if name == "search":
            found = await self._tools.answer("terminal", {"command": self._files.command(given)}, process_id)
            is_none = found.get("status") == "ended" and not found.get("output")
            return {**found, "note": "no matches"} if is_none else found
        if name in FILE_TOOLS:
            made: Answer = await getattr(self._files, name)(given)
            return made
        if name in ("terminal", "process"):
            return await self._tools.answer(name, given, process_id)
        server = next(one for one in self._servers if name in one.schemas)
        made = await server.call(name, given)
        if made.get("output"):
            made["output"] = (await self._client.redact(made["output"]))[0]
        return made

    async def _publish(self, topic: str, **fields: object) -> None:
        try:
            await self._client.publish(topic, {"session": self._client.session, **fields})
        except HoldfastError:
            pass  # an event is not worth failing a call


def groups(calls: list[ToolCall]) -> list[list[ToolCall]]:
    """The calls in their order; those of one group run beside each other."""
    found: list[list[ToolCall]] = []
    for call in calls:
        if found and call.name not in _ALONE and found[-1][-1].name not in _ALONE:
            found[-1].append(call)
        else:
            found.append([call])
    return found
