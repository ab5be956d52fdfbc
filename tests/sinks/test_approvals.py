"""A person who is elsewhere hears of what waits for an approval, and can answer."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.errors import NoApprover
from tests.sinks.receiver import Plan, Receiver
from tests.sinks.test_delivery import Instance, hook, instance, of
from tests.support import eventually

__all__ = ["instance"]

RISKY = "git -C /nonexistent reset --hard"


def ask(hf: holdfast.Client) -> str:
    with pytest.raises(NoApprover) as refused:
        hf.run(RISKY, gate=True)
    return str((refused.value.data or {})["approval"]["id"])


def test_the_request_is_shown_with_the_commands_that_answer_it(instance: Instance, receiver: Receiver) -> None:
    instance.configure(hook(receiver))
    with instance.connect() as hf:
        request = ask(hf)
        (got,) = eventually(lambda: receiver.got)
        told = got.json
        assert (told["kind"], told["session"], told["data"]["approval"]) == ("approval", "chat-42", request)
        assert told["data"]["command"] == RISKY and RISKY in told["summary"]
        assert f"holdfast approve {request}" in told["summary"]
        assert hf.inbox() == [], "the agent is told by its own answer"
        hf.approve(told["data"]["approval"], by="chat")
        assert hf.wait(hf.run(RISKY, gate=True).id).exit_code == 128


def test_what_was_answered_meanwhile_is_not_sent(instance: Instance, receiver: Receiver) -> None:
    receiver.usual = Plan(503)
    instance.configure(hook(receiver))
    with instance.connect() as hf:
        request = ask(hf)
        eventually(lambda: of(hf)["failed"] >= 1)
        hf.deny(request)
        assert of(hf)["pending"] == 0


def test_a_caller_that_asks_by_itself_needs_no_approver(instance: Instance, receiver: Receiver) -> None:
    instance.configure(hook(receiver))
    with instance.connect() as hf:
        with pytest.raises(holdfast.errors.ApprovalRequired):
            hf.run(RISKY, gate=True, asker=True)
        assert of(hf)["pending"] == 0 and not receiver.got
