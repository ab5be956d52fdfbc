"""A program that speaks ACP, by the protocol's own SDK. A prompt is a script: one command a line.

It notes its prompts, and how its sessions were opened, in the directory that is its argument. A file `load` there lets
it load earlier sessions; a file `login` lets it refuse new ones.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import acp
from acp import schema

HERE = Path(sys.argv[1])


def note(name: str, **fields: Any) -> None:
    with (HERE / name).open("a") as file:
        file.write(json.dumps({"pid": os.getpid(), **fields}) + "\n")


class ScriptedAgent:
    def __init__(self) -> None:
        self._client: Any = None
        self._stop = asyncio.Event()
        self._servers: list[Any] = []
        self._numbers = itertools.count(1)

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, client_capabilities: Any = None, **_: Any) -> Any:
        able = schema.AgentCapabilities(load_session=(HERE / "load").exists())
        method = schema.AuthMethodAgent(id="card", name="A card", description="Run `program login` first.")
        return acp.InitializeResponse(protocol_version=1, agent_capabilities=able, auth_methods=[method])

    async def new_session(self, cwd: str, mcp_servers: Any = None, **_: Any) -> Any:
        if (HERE / "login").exists():
            raise acp.RequestError.auth_required()
        self._servers = mcp_servers or []
        session = f"s-{os.getpid()}"
        note("opened", how="new", session=session, cwd=cwd, env=os.environ.get("HOLDFAST_SESSION"))
        return acp.NewSessionResponse(session_id=session)

    async def load_session(self, cwd: str, session_id: str, mcp_servers: Any = None, **_: Any) -> Any:
        self._servers = mcp_servers or []
        note("opened", how="load", session=session_id, cwd=cwd)
        await self._client.session_update(session_id, acp.update_user_message_text("an old message"))
        await self._client.session_update(session_id, acp.update_agent_message_text("an old answer"))
        return acp.LoadSessionResponse()

    async def cancel(self, session_id: str, **_: Any) -> None:
        self._stop.set()

    async def prompt(self, prompt: list[Any], session_id: str, **_: Any) -> Any:
        text = "".join(block.text for block in prompt)
        note("prompts", session=session_id, text=text)
        self._stop.clear()
        for line in text.splitlines():
            name, rest = [*line.split(" ", 1), ""][:2]
            command = getattr(self, f"do_{name}", None)
            if command is not None:
                await command(session_id, rest)
            if self._stop.is_set():
                return acp.PromptResponse(stop_reason="cancelled")
        await self.do_say(session_id, f"read {len(text.splitlines())} lines")
        return acp.PromptResponse(stop_reason="end_turn")

    async def do_say(self, session: str, text: str) -> None:
        for piece in (text[: len(text) // 2], text[len(text) // 2 :]):
            await self._client.session_update(session, acp.update_agent_message_text(piece))

    async def do_call(self, session: str, text: str) -> None:
        """Begins without a title, as some programs do."""
        number = f"call-{os.getpid()}-{next(self._numbers)}"
        begun = acp.start_tool_call(number, "Terminal", kind="execute", status="pending")
        await self._client.session_update(session, begun)
        await self._client.session_update(session, acp.update_tool_call(number, title=text, status="in_progress"))
        content = [acp.tool_content(acp.text_block(f"result of {text}"))]
        await self._client.session_update(session, acp.update_tool_call(number, status="completed", content=content))

    async def do_plan(self, session: str, text: str) -> None:
        """Steps, each with its status: `read=completed,write=in_progress,test=pending`."""
        steps: list[Any] = [one.split("=") for one in text.split(",")]
        steps = [acp.plan_entry(name, status=status) for name, status in steps]
        await self._client.session_update(session, acp.update_plan(steps))

    async def do_open(self, session: str, command: str) -> None:
        """A terminal that it leaves open."""
        made = await self._client.create_terminal(session_id=session, command=command)
        note("terminals", id=made.terminal_id)

    async def do_wait(self, session: str, path: str) -> None:
        number = f"wait-{os.getpid()}-{next(self._numbers)}"
        await self._client.session_update(session, acp.start_tool_call(number, f"wait for {path}", kind="execute"))
        Path(f"{path}.began").touch()
        while not os.path.exists(path) and not self._stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), 0.02)

    async def do_ask(self, session: str, text: str) -> None:
        call = schema.ToolCallUpdate(
            tool_call_id=f"ask-{next(self._numbers)}", title="Bash", kind="execute", raw_input={"command": text}
        )
        options = [
            schema.PermissionOption(option_id="a", name="Always", kind="allow_always"),
            schema.PermissionOption(option_id="y", name="Yes", kind="allow_once"),
            schema.PermissionOption(option_id="n", name="No", kind="reject_once"),
        ]
        answer = await self._client.request_permission(session_id=session, tool_call=call, options=options)
        chosen = getattr(answer.outcome, "option_id", "cancelled")
        note("permissions", chosen=chosen)
        await self.do_say(session, f"chosen {chosen}")

    async def do_run(self, session: str, command: str) -> None:
        made = await self._client.create_terminal(session_id=session, command=command)
        await self._client.wait_for_terminal_exit(session_id=session, terminal_id=made.terminal_id)
        output = await self._client.terminal_output(session_id=session, terminal_id=made.terminal_id)
        await self._client.release_terminal(session_id=session, terminal_id=made.terminal_id)
        await self.do_say(session, f"{made.terminal_id} printed {output.output.strip()}")

    async def do_read(self, session: str, path: str) -> None:
        try:
            found = await self._client.read_text_file(session_id=session, path=path)
            await self.do_say(session, f"content {found.content.strip()}")
        except acp.RequestError as error:
            await self.do_say(session, f"refused: {error}")

    async def do_write(self, session: str, text: str) -> None:
        path, _, content = text.partition(" ")
        await self._client.write_text_file(session_id=session, path=path, content=content)

    async def do_mcp(self, session: str, command: str) -> None:
        """By the tools that it was given: a background process."""
        from mcp import Client, StdioServerParameters, stdio_client

        [server] = self._servers
        env = {**os.environ, **{one.name: one.value for one in server.env}}
        parameters = StdioServerParameters(command=server.command, args=server.args, env=env)
        async with Client(stdio_client(parameters)) as client:
            given = {"command": command, "background": True, "notify_on_complete": True}
            await client.call_tool("terminal", given)

    async def do_shell(self, session: str, command: str) -> None:
        await asyncio.to_thread(subprocess.run, command, shell=True, check=True, stdout=subprocess.DEVNULL)

    async def do_die(self, session: str, rest: str) -> None:
        print("out of luck", file=sys.stderr, flush=True)
        os._exit(3)


agent: Any = ScriptedAgent()
asyncio.run(acp.run_agent(agent))
