"""The agent as a process of its own: one per session, by the lock of its log."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress

from holdfast.agent.config import find_key, read_config
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


async def serve(session: str, since: int | None) -> None:
    """Runs until the agent is not needed any more. Raises NotNow where the session has an agent."""
    home = find_paths().home
    config = read_config(home)
    with SessionLog(home, session) as log:
        options = {**config.start_options, "approval_wait": APPROVAL_WAIT}
        async with (
            AsyncClient(session, strict=True) as client,
            AsyncTools(session, cwd=os.getcwd(), push=True, options=options) as tools,
        ):
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
    """`SESSION [SINCE]`. An agent that cannot run (another has the session, a bad configuration) is not restarted."""
    session, since = arguments[0], int(arguments[1]) if len(arguments) > 1 else None
    try:
        asyncio.run(serve(session, since))
    except NotNow as refused:
        sys.stderr.write(f"{refused.message}\n")
    except HoldfastError as failed:
        sys.stderr.write(f"{failed.message}. Next: {failed.next}\n")
        return BAD_CONFIG if isinstance(failed, BadValue) else 1
    return 0
