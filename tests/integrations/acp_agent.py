"""An agent on the protocol's own SDK: a prompt is a list of terminal calls, and the answer what came of them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import acp
from acp import schema


class Agent:
    def __init__(self) -> None:
        self._client: Any = None
        self._able: dict[str, Any] = {}
        self._count = 0

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, client_capabilities: Any = None, **_: Any) -> Any:
        self._able = client_capabilities.model_dump() if client_capabilities else {}
        return acp.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **_: Any) -> Any:
        self._count += 1
        return acp.NewSessionResponse(session_id=f"talk-{self._count}")

    async def prompt(self, prompt: list[Any], session_id: str, **_: Any) -> Any:
        for name, arguments in json.loads(prompt[0].text):
            told = await self._told(session_id, name, arguments)
            await self._client.session_update(session_id, acp.update_agent_message_text(json.dumps(told)))
        return acp.PromptResponse(stop_reason="end_turn")

    async def _told(self, session: str, name: str, arguments: dict[str, Any]) -> Any:
        if name == "able":
            return self._able.get("terminal")
        if name == "show":
            shown = schema.TerminalToolCallContent(type="terminal", terminal_id=arguments["terminal_id"])
            await self._client.session_update(session, acp.update_tool_call("call-1", content=[shown]))
            return None
        try:
            answer = await getattr(self._client, name)(session_id=arguments.pop("session_id", session), **arguments)
        except acp.RequestError as error:
            return {"error": error.code, "message": str(error)}
        return answer.model_dump() if answer is not None else None


agent: Any = Agent()
asyncio.run(acp.run_agent(agent))
