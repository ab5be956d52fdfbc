"""A client that gives a call up, or goes, while a person is asked: the request is over with it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import types

import holdfast
from tests.mcp.host import NEW, http, stdio
from tests.mcp.wire import Wire
from tests.support import eventually

RISKY = "rm -rf /there-is-no-such-thing/x"


def ask(wire: Wire) -> None:
    """Until the client is asked to ask the person."""
    call = {"name": "terminal", "arguments": {"command": RISKY}}
    wire.write(json.dumps({"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": call}))
    while wire.read().get("method") != "elicitation/create":
        pass


def state_of_the_request() -> str:
    """Of the newest one."""
    with holdfast.connect() as client:
        return str(client.approvals(all=True)[-1].state)


def cancels(wire: Wire) -> None:
    wire.notify("notifications/cancelled", requestId=99)


def closes(wire: Wire) -> None:
    assert wire.process.stdin is not None
    wire.process.stdin.close()


def terminates(wire: Wire) -> None:
    wire.process.terminate()


def kills(wire: Wire) -> None:
    wire.process.kill()


@pytest.mark.parametrize("give_up", [cancels, closes, terminates, kills])
def test_the_request_is_over_at_once(instance: Path, give_up: Callable[[Wire], None]) -> None:
    with Wire() as wire:
        wire.greet("2025-11-25", elicitation={})
        ask(wire)
        assert state_of_the_request() == "pending"
        begun = time.monotonic()
        give_up(wire)
        state = eventually(lambda: found if (found := state_of_the_request()) != "pending" else None)
        assert time.monotonic() - begun < 20  # a second, on a machine that has nothing else to do
        assert state in ("denied", "withdrawn")


def test_a_question_of_the_newest_protocol_is_over_with_its_server(instance: Path) -> None:
    async def use() -> None:
        async with stdio(mode=NEW, elicitation_callback=_never) as host:
            question = await host.client.session.call_tool("terminal", {"command": RISKY}, allow_input_required=True)
            assert isinstance(question, types.InputRequiredResult)
            assert state_of_the_request() == "pending"

    asyncio.run(use())
    eventually(lambda: state_of_the_request() == "withdrawn")


def test_a_request_that_another_asks_for_stays(instance: Path) -> None:
    with holdfast.connect(session="s") as first, holdfast.connect(session="s") as second:
        for client in (first, second):
            with pytest.raises(holdfast.ApprovalRequired):
                client.run(RISKY, gate=True, asker=True)
        first.close()
        assert state_of_the_request() == "pending"
        (request,) = second.approvals(session="s")
        second.approve(request)
    with holdfast.connect(session="s") as third:
        third.run(RISKY, gate=True, asker=True)  # what was answered stands


def test_a_client_that_cannot_ask_differs_from_an_approver_who_does_not_answer(instance: Path) -> None:
    async def use() -> None:
        async with http(elicitation_callback=_fails) as host:
            made = await host.terminal(RISKY)
            assert (made["status"], made["reason"]) == ("denied", "could_not_ask")
            assert "the client could not ask the user" in made["message"] and "no display" in made["message"]

    asyncio.run(use())
    assert state_of_the_request() == "denied"


async def _fails(context: Any, params: Any) -> types.ErrorData:
    return types.ErrorData(code=-32000, message="no display\x1b[2J")


async def _never(context: Any, params: Any) -> types.ErrorData:
    raise AssertionError
