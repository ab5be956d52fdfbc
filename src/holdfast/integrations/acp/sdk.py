"""Terminals for a client that is written with the protocol's Python SDK (`agent-client-protocol`)."""

from __future__ import annotations

import os
from typing import Any

from acp import RequestError
from acp.schema import (
    CreateTerminalResponse,
    EnvVariable,
    KillTerminalResponse,
    ReleaseTerminalResponse,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
)

from holdfast.integrations.acp.terminals import AskUser, RpcError, Terminals


class TerminalClient:
    """The terminal methods of `acp.Client`, to inherit from. Declare the capability `terminal` with it."""

    def __init__(self, home: str | os.PathLike[str] | None = None, ask: AskUser | None = None) -> None:
        self.terminals = Terminals(home, ask)

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[EnvVariable] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **kwargs: Any,
    ) -> CreateTerminalResponse:
        answer = await self._answer(
            "terminal/create",
            sessionId=session_id,
            command=command,
            args=args,
            env=[{"name": one.name, "value": one.value} for one in env or ()],
            cwd=cwd,
            outputByteLimit=output_byte_limit,
        )
        return CreateTerminalResponse.model_validate(answer)

    async def terminal_output(self, session_id: str, terminal_id: str, **kwargs: Any) -> TerminalOutputResponse:
        answer = await self._answer("terminal/output", sessionId=session_id, terminalId=terminal_id)
        return TerminalOutputResponse.model_validate(answer)

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> WaitForTerminalExitResponse:
        answer = await self._answer("terminal/wait_for_exit", sessionId=session_id, terminalId=terminal_id)
        return WaitForTerminalExitResponse.model_validate(answer)

    async def kill_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> KillTerminalResponse | None:
        await self._answer("terminal/kill", sessionId=session_id, terminalId=terminal_id)
        return KillTerminalResponse()

    async def release_terminal(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> ReleaseTerminalResponse | None:
        await self._answer("terminal/release", sessionId=session_id, terminalId=terminal_id)
        return ReleaseTerminalResponse()

    async def _answer(self, method: str, **params: Any) -> dict[str, Any]:
        try:
            return await self.terminals.answer(method, params)
        except RpcError as refused:
            raise RequestError(refused.code, refused.message, refused.data) from None
