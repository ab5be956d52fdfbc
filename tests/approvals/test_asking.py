"""A start that needs a person's approval: asked, answered, refused; on the socket and over HTTP."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Approval, ApprovalRequired, Client, CommandDenied, NoApprover
from holdfast.client.aio_link import AsyncReading
from tests.approvals import surfaces
from tests.approvals.surfaces import RISKY, surface
from tests.support import eventually


@pytest.fixture
def hf(instance: Path) -> Iterator[Client]:
    with holdfast.connect(session="agent", strict=True) as client:
        yield client
    with holdfast.connect() as person:
        person.end_session("agent")
        for approval in person.approvals():
            person.deny(approval)


def data_of(error: holdfast.HoldfastError) -> dict[str, Any]:
    assert error.data is not None
    return error.data


def test_an_approved_command_runs(hf: Client) -> None:
    with surface() as heard:
        process = hf.run(RISKY, gate=True)
    assert hf.wait(process.id, timeout=60).status == "ended"
    assert heard[0].command == RISKY and heard[0].session == "agent" and heard[0].process == process.id
    assert [one.state for one in hf.approvals(all=True) if one.process == process.id] == ["approved"]


def test_once_is_once(hf: Client) -> None:
    with surface():
        hf.run(RISKY, gate=True)
    with pytest.raises(NoApprover):
        hf.run(RISKY, gate=True)


def test_a_denied_command_does_not_run(hf: Client) -> None:
    with surface(surfaces.deny), pytest.raises(CommandDenied) as refused:
        hf.run(RISKY, gate=True, name="never")
    assert data_of(refused.value)["reason"] == "denied"
    with pytest.raises(holdfast.NotFound):
        hf.inspect("never")


def test_without_an_approver_it_is_a_no_at_once_and_the_request_can_be_answered_later(hf: Client) -> None:
    began = time.monotonic()
    with pytest.raises(NoApprover) as refused:
        hf.run(RISKY, gate=True)
    assert time.monotonic() - began < 10.0
    request = data_of(refused.value)["approval"]
    assert data_of(refused.value)["reason"] == "no_approver"
    assert request["id"] in refused.value.next
    with pytest.raises(NoApprover) as again:
        hf.run(RISKY, gate=True)
    assert data_of(again.value)["approval"]["id"] == request["id"], "one card for one question"
    with holdfast.connect() as person:
        person.approve(request["id"])
    assert hf.run(RISKY, gate=True).id.startswith("proc_")
    with pytest.raises(NoApprover):
        hf.run(RISKY, gate=True)


def test_a_surface_that_does_not_show_it_counts_as_none(hf: Client) -> None:
    began = time.monotonic()
    with surface(surfaces.say_nothing, shows=False), pytest.raises(NoApprover) as refused:
        hf.run(RISKY, gate=True)
    assert 2.0 < time.monotonic() - began < 15.0
    assert data_of(refused.value)["approval"]["state"] == "pending", "the card can still be answered"


def test_a_timeout_is_a_no(hf: Client) -> None:
    with surface(surfaces.say_nothing) as heard, pytest.raises(CommandDenied) as refused:
        hf.run(RISKY, gate=True, approval_wait=0.3)
    assert data_of(refused.value)["reason"] == "timeout"
    with holdfast.connect() as person, pytest.raises(holdfast.NotNow):
        person.approve(heard[0])


def test_an_answer_for_the_session_holds_for_the_session_alone(hf: Client) -> None:
    with surface(surfaces.for_session):
        hf.run(RISKY, gate=True)
    hf.run(RISKY, gate=True)
    with pytest.raises(NoApprover):
        hf.run(RISKY, gate=True, cwd="/")
    with holdfast.connect(session="other", strict=True) as other, pytest.raises(NoApprover):
        other.run(RISKY, gate=True)
    with holdfast.connect() as person:
        person.end_session("agent")
        person.end_session("other")
    with pytest.raises(NoApprover):
        hf.run(RISKY, gate=True)


def test_always_holds_for_all_until_it_is_taken_back(hf: Client) -> None:
    with pytest.raises(NoApprover) as refused:
        hf.run(RISKY, gate=True)
    request = data_of(refused.value)["approval"]["id"]
    with holdfast.connect() as person, holdfast.connect(session="other", strict=True) as other:
        person.approve(request, "always")
        hf.run(RISKY, gate=True)
        other.run(RISKY, gate=True)
        assert [one.scope for one in person.approvals() if one.id == request] == ["always"]
        person.deny(request)
        with pytest.raises(NoApprover):
            hf.run(RISKY, gate=True)
        person.end_session("other")


def test_a_caller_that_asks_by_itself_gets_the_question(hf: Client) -> None:
    with pytest.raises(ApprovalRequired) as asked:
        hf.run(RISKY, gate=True, asker=True)
    request = data_of(asked.value)["approval"]
    assert request["command"] == RISKY
    assert hf.approve(request["id"], by="elicitation").state == "approved"
    assert hf.run(RISKY, gate=True, asker=True).id.startswith("proc_")
    with pytest.raises(ApprovalRequired):
        hf.run(RISKY, gate=True, asker=True)


def test_who_asks_cannot_approve_it(hf: Client) -> None:
    with pytest.raises(NoApprover) as refused:
        hf.run(RISKY, gate=True)
    request = data_of(refused.value)["approval"]["id"]
    with pytest.raises(holdfast.Denied):
        hf.approve(request)
    with pytest.raises(NoApprover):
        hf.run(RISKY, gate=True)


def test_a_start_that_is_cut_off_withdraws_its_request(hf: Client) -> None:
    with surface(surfaces.say_nothing) as heard:
        client = holdfast.connect(session="agent", strict=True)
        link = client.open_link()
        link.ask("start", {"id": "proc_00000000cafe", "command": RISKY, "cwd": "/tmp", "gate": True})
        eventually(lambda: heard and hf.approvals()[0].fields["shown_at"])
        began = time.monotonic()
        link.close()
        client.close()
        eventually(lambda: [one for one in heard if one.state == "withdrawn"])
        assert time.monotonic() - began < 10.0
        with holdfast.connect() as person, pytest.raises(holdfast.NotNow):
            person.approve(heard[0])
    with pytest.raises(holdfast.NotFound):
        hf.inspect("proc_00000000cafe")


async def until(reading: AsyncReading[Approval], wanted: Callable[[Approval], bool]) -> Approval:
    async for approval in reading:
        if wanted(approval):
            return approval
    raise AssertionError("it ends only with us")


def test_a_cancelled_start_of_the_async_client_withdraws_its_request(instance: Path, hf: Client) -> None:
    async def work() -> None:
        async with asyncio.timeout(60), holdfast.aconnect(session="agent", strict=True) as agent:
            start = asyncio.ensure_future(agent.run(RISKY, gate=True))
            async with agent.follow_approvals() as reading:
                shown = await until(reading, lambda one: one.fields["shown_at"] is not None)
                start.cancel()
                began = time.monotonic()
                withdrawn = await until(reading, lambda one: one.state == "withdrawn")
                assert time.monotonic() - began < 10.0
            assert withdrawn.id == shown.id

    with surface(surfaces.say_nothing):
        asyncio.run(work())


def test_an_approver_who_leaves_is_waited_for_three_seconds(hf: Client) -> None:
    raised: list[BaseException] = []

    def start() -> None:
        with pytest.raises(NoApprover) as refused:
            hf.run(RISKY, gate=True)
        raised.append(refused.value)

    with surface(surfaces.say_nothing):
        thread = threading.Thread(target=start)
        thread.start()
        eventually(lambda: [one for one in hf.approvals() if one.fields["shown_at"]])
    began = time.monotonic()
    thread.join(30)
    assert raised and 2.0 < time.monotonic() - began < 15.0


def test_the_async_client_answers_as_well(instance: Path, hf: Client) -> None:
    async def answer() -> None:
        async with (
            asyncio.timeout(60),
            holdfast.aconnect(session="person") as person,
            person.follow_approvals() as reading,
        ):
            async for approval in reading:
                if approval.state == "pending":
                    await person.approval_shown(approval)
                    await person.approve(approval)
                elif approval.state == "approved":
                    return

    thread = threading.Thread(target=lambda: asyncio.run(answer()))
    thread.start()
    eventually(lambda: _runs(hf), pause=0.1)
    thread.join(20)


def _runs(hf: Client) -> bool:
    try:
        return bool(hf.run(RISKY, gate=True, approval_wait=10).id)
    except NoApprover:
        return False


@pytest.mark.parametrize(
    "wrong",
    [
        {"gate": "yes"},
        {"gate": True, "asker": 3},
        {"gate": True, "approval_wait": -1},
        {"gate": True, "approval_wait": "x"},
    ],
)
def test_wrong_values_are_refused(hf: Client, wrong: dict[str, Any]) -> None:
    with pytest.raises(holdfast.BadValue):
        hf.run("true", **wrong)


def test_unknown_and_hostile_ids_are_not_found(hf: Client) -> None:
    with holdfast.connect() as person:
        for text in ("appr_000000000000", "appr_", "a", "\x1b[2J", "proc_000000000000"):
            with pytest.raises(holdfast.NotFound):
                person.approve(text)
            with pytest.raises(holdfast.NotFound):
                person.deny(text)
        with pytest.raises(holdfast.BadValue):
            person.approve("appr_000000000000" * 10)
