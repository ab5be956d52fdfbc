"""The agent as a process of its own: one per session, by the lock of its log."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from typing import Any

from holdfast.agent.acp.agent import AcpAgent
from holdfast.agent.config import AgentConfig, find_acp, find_key, read_config
from holdfast.agent.loop import Agent
from holdfast.agent.model_client import ModelClient
from holdfast.agent.toolbox import Toolbox
from holdfast.client.aio import AsyncClient
from holdfast.errors import BadValue, HoldfastError, NotNow
from holdfast.model.agents import BAD_CONFIG
from holdfast.paths import find_paths
from holdfast.session_log import SessionLog
from holdfast.tools.aio import AsyncTools

#: How long the user has to approve a command.
APPROVAL_WAIT = 45.0


def _load_client() -> None:
    """It takes a second or more, while the agent already reads its log. Where it is missing, the first turn says so."""
    with suppress(ImportError):
        import openai  # noqa: F401


async def serve(session: str, since: int | None, acp: str | None = None) -> None:
    """Runs until the agent is not needed any more. Raises NotNow where the session has an agent.

    `acp` names the program that does the turns; None for what the session had before, else for a model.
    """
    home = find_paths().home
    config = read_config(home)
    with SessionLog(home, session) as log:
        before = _settings_of(log)
        named = acp or (str(before.get("acp") or "") if before else "")
        if before and acp and before.get("acp") != acp:
            what = f"this session has another agent: {before.get('acp') or before.get('model') or 'a model'}"
            raise BadValue(what, next="begin another session for this one")
        async with AsyncClient(session, strict=True) as client:
            if named:
                await AcpAgent(log, client, config, find_acp(config, named), named, since).run()
            else:
                await _serve_model(home, config, log, client, since)


def _settings_of(log: SessionLog) -> dict[str, Any] | None:
    return next((entry.content for entry in reversed(log.branch()) if entry.kind == "settings"), None)


async def _serve_model(home: str, config: AgentConfig, log: SessionLog, client: AsyncClient, since: int | None) -> None:
    options = {**config.start_options, "approval_wait": APPROVAL_WAIT}
    async with AsyncTools(log.session, cwd=os.getcwd(), push=True, options=options) as tools:
        asyncio.get_running_loop().run_in_executor(None, _load_client)
        toolbox = Toolbox(client, tools, config)
        await toolbox.open()
        try:
            agent = Agent(
                log,
                client,
                tools,
                toolbox,
                config,
                lambda base_url: ModelClient(config, base_url, find_key(config, home)),
                since,
            )
            await agent.run()
        finally:
            await toolbox.close()


def main(arguments: list[str]) -> int:
    """`SESSION [SINCE [ACP]]`. One that cannot run (another has the session, a bad configuration) is not restarted."""
    session, since = arguments[0], int(arguments[1]) if len(arguments) > 1 else None
    try:
        asyncio.run(serve(session, since, arguments[2] if len(arguments) > 2 else None))
    except NotNow as refused:
        sys.stderr.write(f"{refused.message}\n")
    except HoldfastError as failed:
        sys.stderr.write(f"{failed.message}. Next: {failed.next}\n")
        return BAD_CONFIG if isinstance(failed, BadValue) else 1
    return 0
