"""Terminals of an agent, held by holdfast: editor and agent speak the protocol's own SDK."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
import pytest
from acp import schema

import holdfast
from holdfast.integrations.acp import terminals
from holdfast.integrations.acp.sdk import TerminalClient
from tests.support import eventually, run_cli

_AGENT = str(Path(__file__).with_name("acp_agent.py"))
_NOT_FOUND, _INVALID = -32002, -32602


class Editor:
    """Shows nothing, keeps what it is sent, and says to every question what `says` says."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.asked: list[Any] = []
        self.shown: list[Any] = []
        self.says: str | None = None

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if update.session_update == "agent_message_chunk":
            self.told.append(json.loads(update.content.text))
        else:
            self.shown.append(update)

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **_: Any) -> Any:
        self.asked.append(tool_call.title)
        chosen = [option.option_id for option in options if option.kind == self.says]
        outcome: Any = schema.DeniedOutcome(outcome="cancelled")
        if chosen:
            outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen[0])
        return schema.RequestPermissionResponse(outcome=outcome)


class WithTerminals(TerminalClient, Editor):
    def __init__(self) -> None:
        TerminalClient.__init__(self)
        Editor.__init__(self)


class Talk:
    """A session of the agent, as the editor has it."""

    def __init__(self, agent: Any, editor: Editor, session: str) -> None:
        self._agent = agent
        self.editor = editor
        self.session = session

    async def do(self, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
        """What the agent was answered."""
        self.editor.told.clear()
        await self._agent.prompt(session_id=self.session, prompt=[acp.text_block(json.dumps(calls))])
        return list(self.editor.told)

    async def call(self, name: str, **arguments: Any) -> Any:
        return (await self.do((name, arguments)))[0]

    async def terminal(self, command: str, **arguments: Any) -> str:
        return str((await self.call("create_terminal", command=command, **arguments))["terminal_id"])


@asynccontextmanager
async def _talks(command: list[str], editor: Any, cwd: str, count: int = 1) -> AsyncIterator[list[Talk]]:
    able = schema.ClientCapabilities(terminal=isinstance(editor, TerminalClient))
    async with acp.spawn_agent_process(editor, *command, env=dict(os.environ), cwd=cwd) as (agent, process):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=able)
        talks = []
        for _ in range(count):
            made = await agent.new_session(cwd=cwd, mcp_servers=[])
            talks.append(Talk(agent, editor, made.session_id))
        yield talks
        del process


def _proxied(cwd: Path, count: int = 1) -> Any:
    command = [sys.executable, "-m", "holdfast", "acp", "--", sys.executable, _AGENT]
    return _talks(command, Editor(), str(cwd), count)


async def _a_life(talk: Talk, cwd: Path) -> None:
    """A terminal from its creation to its release."""
    terminal = await talk.terminal("sh", args=["-c", 'echo "hällo $NAME"; pwd; exit 3'], env=[_pair("NAME", "you")])
    waited = await talk.call("wait_for_terminal_exit", terminal_id=terminal)
    assert (waited["exit_code"], waited["signal"]) == (3, None)
    found = await talk.call("terminal_output", terminal_id=terminal)
    assert found["output"] == f"hällo you\n{cwd}\n" and found["truncated"] is False
    assert found["exit_status"]["exit_code"] == 3
    with holdfast.connect(f"acp-{talk.session}") as hf:
        assert hf.inspect(terminal).exit_code == 3
    assert await talk.call("release_terminal", terminal_id=terminal) is not None
    for name in ("terminal_output", "wait_for_terminal_exit", "kill_terminal", "release_terminal"):
        assert (await talk.call(name, terminal_id=terminal))["error"] == _NOT_FOUND


def _pair(name: str, value: str) -> dict[str, str]:
    return {"name": name, "value": value}


def test_a_terminal_through_the_proxy(instance: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with _proxied(tmp_path) as (talk,):
            assert await talk.call("able") is True
            await _a_life(talk, tmp_path)

    asyncio.run(main())


def test_a_terminal_of_a_client_on_the_sdk(instance: Path, tmp_path: Path) -> None:
    async def main() -> None:
        editor = WithTerminals()
        async with _talks([sys.executable, _AGENT], editor, str(tmp_path)) as (talk,):
            editor.terminals.directories[talk.session] = str(tmp_path)
            await _a_life(talk, tmp_path)
            await editor.terminals.close()

    asyncio.run(main())


def test_running_terminals_are_read_killed_and_end_with_the_agent(instance: Path, tmp_path: Path) -> None:
    async def main() -> tuple[str, str]:
        async with _proxied(tmp_path) as (talk,):
            terminal = await talk.terminal("echo begun; sleep 100")
            with holdfast.connect(f"acp-{talk.session}") as hf:
                hf.wait(terminal, until="output", after=0)
            found = await talk.call("terminal_output", terminal_id=terminal)
            assert (found["output"], found["exit_status"]) == ("begun\n", None)
            await talk.call("kill_terminal", terminal_id=terminal)
            waited = await talk.call("wait_for_terminal_exit", terminal_id=terminal)
            assert waited["exit_code"] is None and waited["signal"] == "SIGTERM"
            assert (await talk.call("terminal_output", terminal_id=terminal))["output"] == "begun\n"
            return talk.session, await talk.terminal("sleep 101")

    session, left = asyncio.run(main())
    with holdfast.connect(f"acp-{session}") as hf:
        eventually(lambda: not hf.inspect(left).is_running)


def test_sessions_know_nothing_of_each_others_terminals(instance: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with _proxied(tmp_path, count=2) as (one, other):
            terminal = await one.terminal("sleep 100")
            foreign = await other.call("terminal_output", terminal_id=terminal)
            unknown = await other.call("terminal_output", terminal_id="proc_000000000000")
            assert foreign["error"] == unknown["error"] == _NOT_FOUND
            assert foreign["message"].replace(terminal, "X") == unknown["message"].replace("proc_000000000000", "X")
            await one.call("release_terminal", terminal_id=terminal)

    asyncio.run(main())


def test_the_end_of_a_long_output_is_kept_in_whole_characters(instance: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with _proxied(tmp_path) as (talk,):
            terminal = await talk.terminal("printf 'aé%.0s' $(seq 5000); printf end", output_byte_limit=100)
            await talk.call("wait_for_terminal_exit", terminal_id=terminal)
            found = await talk.call("terminal_output", terminal_id=terminal)
            assert found["truncated"] is True and found["output"].endswith("éaéend")
            assert 98 <= len(found["output"].encode()) <= 100 and "\ufffd" not in found["output"]
            terminal = await talk.terminal("echo x", output_byte_limit=0)
            await talk.call("wait_for_terminal_exit", terminal_id=terminal)
            found = await talk.call("terminal_output", terminal_id=terminal)
            assert (found["output"], found["truncated"]) == ("", True)

    asyncio.run(main())


def test_what_cannot_be_started_is_refused(instance: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with _proxied(tmp_path) as (talk,):
            for arguments in ({"command": ""}, {"command": "ls", "cwd": "relative"}):
                assert (await talk.call("create_terminal", **arguments))["error"] == _INVALID
            gone = await talk.call("create_terminal", command="ls", cwd=str(tmp_path / "gone"))
            missing = await talk.call("create_terminal", command="no-such-program", args=["x"])
            assert gone["error"] < 0 and "Next:" in gone["message"]
            assert missing["error"] < 0 and "no-such-program" in missing["message"]

    asyncio.run(main())


def test_the_user_is_asked_in_the_editor(instance: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.mkdir()
    command = "rm -rf ~/no-such-precious-thing ./precious"

    async def main() -> None:
        async with _proxied(tmp_path) as (talk,):
            refused = await talk.call("create_terminal", command=command)
            assert "said no" in refused["message"] and target.exists()
            talk.editor.says = "allow_once"
            terminal = await talk.terminal(command)
            await talk.call("wait_for_terminal_exit", terminal_id=terminal)
            assert not target.exists()
            assert len(talk.editor.asked) == 2 and command in talk.editor.asked[0]

    asyncio.run(main())


def test_an_editor_that_is_shown_a_terminal_sees_its_output(instance: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with _proxied(tmp_path) as (talk,):
            terminal = await talk.terminal("echo to be seen")
            await talk.do(("wait_for_terminal_exit", {"terminal_id": terminal}), ("show", {"terminal_id": terminal}))
            (part,) = talk.editor.shown[-1].content
            assert part.type == "content" and "to be seen" in part.content.text

    asyncio.run(main())


def test_the_agents_exit_code_is_the_proxys(home: Path) -> None:
    assert run_cli("acp", "--", "sh", "-c", "exit 7", input=b"").returncode == 7
    assert run_cli("acp", "--", "sh", "-c", "kill -9 $$", input=b"").returncode == 137
    missing = run_cli("acp", "--", "no-such-agent", input=b"")
    assert missing.returncode == 127 and missing.stderr.count(b"\n") == 1
    assert run_cli("acp").returncode == 125


def test_messages_of_any_kind_are_passed_on(home: Path) -> None:
    odd = b'{"id":[]}\n{"id":{},"method":{}}\n{"id":1,"method":[]}\n{"id":null}\n{"id":"holdfast-1"}\n[]\n3\n\xff\n'
    through = run_cli("acp", "--", "cat", input=odd)
    assert (through.returncode, through.stdout, through.stderr) == (0, odd, b"")


@pytest.mark.parametrize("limit", [*range(12), 1 << 40])
def test_output_is_cut_at_characters(limit: int) -> None:
    text = "aé€😀z"
    cut = terminals.last_bytes(text, limit)
    assert text.endswith(cut) and len(cut.encode()) <= limit
    longer = text[-len(cut) - 1 :] if len(cut) < len(text) else None
    assert longer is None or len(longer.encode()) > limit


@pytest.mark.parametrize("streams", ["</dev/null", "<&-", "<FILE", ">FILE", ">&-"])
def test_streams_that_are_no_editors_are_refused_before_an_agent_starts(
    home: Path, tmp_path: Path, streams: str
) -> None:
    (tmp_path / "file").touch()
    agent = f"touch {tmp_path}/started"
    line = f"exec {sys.executable} -m holdfast acp -- sh -c '{agent}' {streams.replace('FILE', f'{tmp_path}/file')}"
    done = subprocess.run(["sh", "-c", line], input=b"", capture_output=True, check=False, timeout=60)
    assert done.returncode == 125 and done.stderr.count(b"\n") == 1 and b"not pipes" in done.stderr
    assert not (tmp_path / "started").exists()
