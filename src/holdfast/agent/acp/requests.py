"""What a program that speaks ACP asks for: terminals, files, and the permission of the user."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

from holdfast.agent.acp.program import unknown_method
from holdfast.agent.acp.reports import LONGEST_RESULT, AcpReports
from holdfast.agent.config import AgentConfig
from holdfast.agent.conversation import ToolCall
from holdfast.agent.file_tools import FileTools
from holdfast.client.aio import AsyncClient
from holdfast.errors import HoldfastError, NotApproved
from holdfast.integrations.acp.messages import Message
from holdfast.integrations.acp.terminals import FAILED, INVALID_PARAMS, RpcError, Terminals
from holdfast.tools.answers import ToolRefusal

#: How long the user has to answer.
_APPROVAL_WAIT = 45.0
_CANCELLED: Message = {"outcome": {"outcome": "cancelled"}}


class AcpRequests:
    """`name` is the program's; `log` the path of the session log, which identifies its questions."""

    def __init__(self, client: AsyncClient, config: AgentConfig, reports: AcpReports, name: str, log: str) -> None:
        self._client = client
        self._reports = reports
        self._name = name
        self._log = log
        self._cwd = ""
        local = config._replace(backend="", image="", host="")  # the program runs on this machine
        self._files = FileTools(client, local, lambda command: None)
        self._terminals = Terminals(client.paths.home, session=client.session, approval_wait=_APPROVAL_WAIT)

    def use_directory(self, session: str, cwd: str) -> None:
        """Where commands of a session of the program run, if they name no directory."""
        self._cwd = cwd
        self._terminals.directories[session] = cwd

    async def end_left_terminals(self) -> None:
        """End those of a program that is gone. Raises HoldfastError."""
        await self._terminals.end_left()

    async def close(self) -> None:
        """End all terminals that were not released."""
        await self._terminals.close()

    async def serve(self, method: str, params: Message) -> Message:
        """The answer to a request. Raises RpcError."""
        if self._terminals.serves(method):
            return await self._terminals.answer(method, params)
        try:
            match method:
                case "session/request_permission":
                    return await self._permission(params)
                case "fs/read_text_file":
                    return await self._read_file(params)
                case "fs/write_text_file":
                    return await self._write_file(params)
        except (HoldfastError, ToolRefusal) as refused:
            raise RpcError(FAILED, str(getattr(refused, "message", refused))) from None
        raise unknown_method(method)

    async def _permission(self, params: Message) -> Message:
        """Ask the user. No answer, and no approver, is a no."""
        call, options = params.get("toolCall"), params.get("options")
        if not isinstance(call, dict) or not isinstance(options, list):
            raise RpcError(INVALID_PARAMS, "toolCall or options is missing")
        known = self._reports.take_question(call)
        number = f"{self._log}:{params.get('sessionId')}:{call.get('toolCallId')}"[-256:]
        try:
            await self._client.request_approval(
                key=number,
                command=_asked_for(call, known),
                why=f"{self._name} asks",
                cwd=self._cwd,
                approval_wait=_APPROVAL_WAIT,
            )
        except asyncio.CancelledError:
            return _CANCELLED
        except NotApproved:
            return _chosen(options, "reject_once", "reject_always")
        return _chosen(options, "allow_once", "allow_always")

    async def _read_file(self, params: Message) -> Message:
        data = await self._files.get(_path(params))
        lines = data.decode(errors="replace").splitlines(keepends=True)
        first, count = _number(params, "line", 1), _number(params, "limit", len(lines))
        (text,) = await self._client.redact("".join(lines[first - 1 : first - 1 + count]))
        return {"content": text}

    async def _write_file(self, params: Message) -> Message:
        content = params.get("content")
        if not isinstance(content, str):
            raise RpcError(INVALID_PARAMS, "content is no text")
        await self._files.put(_path(params), content.encode(errors="surrogateescape"))
        return {}


def _asked_for(call: Message, known: ToolCall | None) -> str:
    """What the user approves, as text."""
    given = call.get("rawInput")
    title = str(call.get("title") or "")
    if not title and known is not None:
        title = str(json.loads(known.arguments).get("title") or known.name)
    if isinstance(given, dict) and isinstance(given.get("command"), str):
        return str(given["command"])[:LONGEST_RESULT]
    shown = json.dumps(given, ensure_ascii=False)[:LONGEST_RESULT] if given else ""
    return "\n".join(part for part in (title or str(call.get("kind") or "a call"), shown) if part)


def _chosen(options: list[Any], *kinds: str) -> Message:
    """The answer with the first of these kinds that is offered. What was approved for longer is remembered here."""
    for kind in kinds:
        for option in options:
            if isinstance(option, dict) and option.get("kind") == kind:
                return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
    return _CANCELLED


def _path(params: Message) -> str:
    path = params.get("path")
    if not isinstance(path, str) or not os.path.isabs(path):
        raise RpcError(INVALID_PARAMS, "path is no absolute path")
    return path


def _number(params: Message, name: str, default: int) -> int:
    value = params.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise RpcError(INVALID_PARAMS, f"{name} is no number from 0 on")
    return max(1, value) if name == "line" else value
