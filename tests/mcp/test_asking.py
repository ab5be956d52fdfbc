"""Approvals by elicitation: the person at the client is asked, and only an explicit yes lets a command pass."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import types

import holdfast
from tests.mcp.host import NEW, OLD, Host, http, stdio
from tests.tools.model import checked

BOTH = pytest.mark.parametrize("mode", [OLD, NEW])


class Person:
    """Answers as it was told to, and remembers what it was asked."""

    def __init__(self, action: str, content: Any = None) -> None:
        self._says: Any = {"action": action, **({"content": content} if content is not None else {})}
        self.asked: list[types.ElicitRequestFormParams] = []

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params)
        return types.ElicitResult(**self._says)


def asked(mode: str, person: Person, use: Callable[[Host], Awaitable[None]]) -> None:
    async def run() -> None:
        async with http(mode, elicitation_callback=person) as host:
            await use(host)

    asyncio.run(run())


def dangerous(tmp_path: Path) -> tuple[str, Path]:
    """A command that asks, and what it would destroy."""
    victim = tmp_path / "victim"
    victim.mkdir()
    return f"rm -rf ~/there-is-no-such-thing {victim}", victim


@BOTH
def test_once(instance: Path, tmp_path: Path, mode: str) -> None:
    command, victim = dangerous(tmp_path)
    person = Person("accept", {"decision": "once"})

    async def use(host: Host) -> None:
        made = await host.terminal(command)
        assert (made["status"], made["exit_code"]) == ("ended", 0)
        assert not victim.exists()
        victim.mkdir()
        person._says = {"action": "decline"}
        assert (await host.terminal(command))["status"] == "denied"
        assert victim.exists()

    asked(mode, person, use)
    first = person.asked[0]
    assert command in first.message
    field = first.requested_schema["properties"]["decision"]
    assert field["enum"] == ["deny", "once", "session", "always"] and "default" not in field
    assert len(person.asked) == 2


@BOTH
def test_for_the_session(instance: Path, tmp_path: Path, mode: str) -> None:
    command, victim = dangerous(tmp_path)
    person = Person("accept", {"decision": "session"})

    async def use(host: Host) -> None:
        await host.terminal(command)
        victim.mkdir()
        await host.terminal(command)
        assert not victim.exists() and len(person.asked) == 1

    asked(mode, person, use)


_NO: list[tuple[str, Any]] = [
    ("decline", None),
    ("cancel", None),
    ("accept", {"decision": "deny"}),
    ("accept", {}),
    ("accept", {"decision": "yes"}),
    ("decline", {"decision": "always"}),
]


@BOTH
def test_everything_else_is_a_no(instance: Path, tmp_path: Path, mode: str) -> None:
    command, victim = dangerous(tmp_path)
    person = Person("decline")

    async def use(host: Host) -> None:
        for action, content in _NO:
            person._says = {"action": action, "content": content}
            made = await host.terminal(command)
            assert (made["status"], made["is_error"]) == ("denied", True)
            with holdfast.connect() as client:
                (found,) = [one for one in client.approvals(all=True) if one.id == made["approval"]]
            assert found.state == "denied"

    asked(mode, person, use)
    assert victim.exists() and len(person.asked) == len(_NO)


def test_no_answer_is_a_denial(instance: Path, tmp_path: Path) -> None:
    command, victim = dangerous(tmp_path)

    async def never(context: Any, params: Any) -> types.ElicitResult:
        await asyncio.sleep(60)
        raise AssertionError

    async def use() -> None:
        async with stdio("--call-limit", "1", elicitation_callback=never) as host:
            made = await host.terminal(command)
            assert (made["status"], made["reason"]) == ("denied", "timeout")

    asyncio.run(use())
    assert victim.exists()


def test_without_elicitation_the_answer_says_who_can_approve(instance: Path, tmp_path: Path) -> None:
    command, victim = dangerous(tmp_path)

    async def use() -> None:
        async with http() as host:
            made = await host.terminal(command)
            assert (made["status"], made["reason"]) == ("denied", "no_approver")
            assert f"holdfast approve {made['approval']}" in made["next"]

    asyncio.run(use())
    assert victim.exists()


def test_what_is_typed_into_a_shell_asks_too(instance: Path, tmp_path: Path) -> None:
    command, victim = dangerous(tmp_path)
    person = Person("decline")

    async def use(host: Host) -> None:
        shell = await host.background("bash")
        assert (await host.process("submit", session_id=shell, data=command))["status"] == "denied"
        person._says = {"action": "accept", "content": {"decision": "once"}}
        assert (await host.process("submit", session_id=shell, data=command))["reason"] == "written"
        await host.process("close", session_id=shell)
        await host.process("wait", session_id=shell)

    asked(OLD, person, use)
    assert not victim.exists() and len(person.asked) == 2


def test_an_answer_counts_for_the_call_that_asked_alone(instance: Path, tmp_path: Path) -> None:
    command, victim = dangerous(tmp_path)
    other = tmp_path / "other"
    other.mkdir()

    async def use() -> None:
        async with http(NEW, elicitation_callback=Person("accept", {"decision": "once"})) as host:
            session = host.client.session
            question = await session.call_tool("terminal", {"command": command}, allow_input_required=True)
            assert isinstance(question, types.InputRequiredResult)
            yes: types.InputResponses = {"approval": types.ElicitResult(action="accept", content={"decision": "once"})}
            for state, arguments in (
                (question.request_state, {"command": f"rm -rf ~/there-is-no-such-thing {other}"}),
                ("appr_000000000000", {"command": command}),
            ):
                again = await session.call_tool(
                    "terminal", arguments, input_responses=yes, request_state=state, allow_input_required=True
                )
                assert isinstance(again, types.InputRequiredResult)  # it is asked for itself

    asyncio.run(use())
    assert victim.exists() and other.exists()


@pytest.mark.parametrize("answerer", ["other", None])
@pytest.mark.parametrize("asker", ["one", None])
def test_a_session_cannot_answer_the_question_of_another(
    instance: Path, tmp_path: Path, asker: str | None, answerer: str | None
) -> None:
    """Even if it knows the approval, and the call that was asked for."""
    command, victim = dangerous(tmp_path)
    yes: types.InputResponses = {"approval": types.ElicitResult(action="accept", content={"decision": "once"})}

    def named(session: str | None) -> dict[str, str]:
        return {"holdfast-session": session} if session is not None else {}

    async def call(host: Host, **more: Any) -> object:
        return await host.client.session.call_tool("terminal", {"command": command}, allow_input_required=True, **more)

    async def use() -> None:
        person = Person("accept", {"decision": "once"})
        async with http(NEW, named(asker), elicitation_callback=person) as host:
            question = await call(host)
            assert isinstance(question, types.InputRequiredResult)
        with holdfast.connect() as user:
            (request,) = [one for one in user.approvals() if one.command == command]
        async with http(NEW, named(answerer), elicitation_callback=person) as host:
            states = [request.id] if asker == answerer else [request.id, question.request_state]
            for state in states:
                again = await call(host, input_responses=yes, request_state=state)
                assert isinstance(again, types.InputRequiredResult)  # it is asked for itself

    asyncio.run(use())
    assert victim.exists()
    with holdfast.connect() as user:
        assert not [one for one in user.approvals(all=True) if one.command == command and one.state == "approved"]


def test_a_judged_command_cannot_approve_by_being_a_client(home: Path, tmp_path: Path) -> None:
    """Neither by a server of its own nor by the daemon's."""
    command, victim = dangerous(tmp_path)
    script = tmp_path / "client.py"
    script.write_text(_CLIENT)

    async def use() -> None:
        async with stdio() as host:
            for door in ("stdio", "socket"):
                made = await host.terminal(f"PYTHONPATH={Path.cwd()} {sys.executable} {script} {door} '{command}'")
                assert made["exit_code"] == 0, made
                assert checked(made["output"].splitlines()[-1])["is_error"] is True

    asyncio.run(use())
    assert victim.exists()


_CLIENT = """
import asyncio, os, sys
import httpx2
from mcp import types
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from tests.mcp.host import stdio

async def yes(context, params):
    return types.ElicitResult(action="accept", content={"decision": "once"})

async def main(door, command):
    if door == "stdio":
        async with stdio(elicitation_callback=yes) as host:
            result = await host.client.call_tool("terminal", {"command": command})
    else:
        transport = httpx2.AsyncHTTPTransport(uds=os.environ["HOLDFAST_HOME"] + "/daemon.sock")
        async with httpx2.AsyncClient(transport=transport, timeout=60) as http:
            where = streamable_http_client("http://localhost/mcp", http_client=http)
            async with Client(where, mode="legacy", elicitation_callback=yes) as client:
                result = await client.call_tool("terminal", {"command": command})
    print(result.content[0].text)

asyncio.run(main(*sys.argv[1:]))
"""
