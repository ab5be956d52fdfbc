"""Connections that are bound to a session: what belongs to others answers exactly like what was never there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, cast

import pytest

import holdfast
from holdfast import Client, HoldfastError, Process
from holdfast.client.link import Output
from holdfast.client.reading import Reading
from holdfast.daemon.core.context import Call
from holdfast.daemon.core.registry import Registry
from holdfast.daemon.handlers import HANDLERS, Later
from holdfast.daemon.handlers.doctor import held_processes
from holdfast.daemon.listener import scope
from holdfast.model.lifecycle import Running
from holdfast.ops.catalog import OPERATIONS
from holdfast.ops.declare import Scope
from tests.approvals.surfaces import RISKY
from tests.daemon.acting import ask
from tests.http.asking import Api
from tests.model import made
from tests.support import eventually, run_cli

UNKNOWN = "proc_0123456789ab"

ClientCall = Callable[[Client, str], object]


def _first(reading: Reading[Output]) -> object:
    with reading:
        return next(reading)


#: Every method of the client that takes a process. Each has to refuse one of another session.
CALLS: dict[str, ClientCall] = {
    "inspect": lambda hf, ref: hf.inspect(ref),
    "why": lambda hf, ref: hf.why(ref),
    "process_events": lambda hf, ref: hf.process_events(ref),
    "logs": lambda hf, ref: hf.logs(ref),
    "log_times": lambda hf, ref: hf.log_times(ref, stream="out", offset=0, upto=1),
    "search": lambda hf, ref: hf.search(ref, "x"),
    "wait": lambda hf, ref: hf.wait(ref, timeout=1),
    "wait for output": lambda hf, ref: hf.wait(ref, until="output", timeout=1),
    "kill": lambda hf, ref: hf.kill(ref),
    "signal": lambda hf, ref: hf.kill(ref, signal="CONT"),
    "send": lambda hf, ref: hf.send(ref, "x"),
    "close": lambda hf, ref: hf.send(ref, eof=True, enter=False),
    "screen": lambda hf, ref: hf.screen(ref),
    "resize": lambda hf, ref: hf.resize(ref, 80, 24),
    "restart": lambda hf, ref: hf.restart(ref),
    "remove": lambda hf, ref: hf.remove(ref),
    "follow": lambda hf, ref: _first(hf.follow(ref)),
    "read": lambda hf, ref: _first(hf.read(ref)),
    "transfer": lambda hf, ref: hf.transfer(ref, "agent"),
}
#: Requests on a connection of their own, which only the socket has.
ON_THE_SOCKET: dict[str, ClientCall] = {
    "attached": lambda hf, ref: ask(hf, "attached", process=ref),
}


@pytest.fixture
def foreign(instance: Path) -> Iterator[Process]:
    with holdfast.connect(session="owner") as hf:
        process = hf.run("echo secret; exec cat", name="theirs", stdin=True, task="job")
        eventually(lambda: hf.inspect(process).output_bytes)
        yield process
        hf.kill(process, grace=0.2)
        hf.remove(process)


@pytest.fixture
def agent(instance: Path) -> Iterator[Client]:
    with holdfast.connect(session="agent", strict=True) as hf:
        yield hf
        hf.kill(all=True, grace=0.2)


def refusal(call: ClientCall, hf: Client, ref: str) -> dict[str, Any]:
    with pytest.raises(HoldfastError) as refused:
        call(hf, ref)
    told = refused.value.to_wire()
    return {key: str(value).replace(ref, "REF") for key, value in told.items()}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_foreign_id_answers_like_an_unknown_one(agent: Client, foreign: Process, call: ClientCall) -> None:
    unknown = refusal(call, agent, UNKNOWN)
    assert unknown["code"] == "not_found"
    assert refusal(call, agent, foreign.id) == unknown
    assert refusal(call, agent, foreign.id[:12]) == refusal(call, agent, UNKNOWN[:12])
    assert refusal(call, agent, "theirs") == refusal(call, agent, "nobodys")
    with holdfast.connect(session="owner", strict=True) as owner:
        assert owner.inspect(foreign).status == "running", "and nothing came of it"


@pytest.mark.parametrize("call", ON_THE_SOCKET.values(), ids=ON_THE_SOCKET.keys())
def test_also_of_what_is_asked_on_the_socket_alone(
    agent: Client, foreign: Process, call: ClientCall, instance: Path
) -> None:
    with holdfast.connect(session="agent", strict=True, home=instance) as hf:
        unknown = refusal(call, hf, UNKNOWN)
        assert unknown["code"] == "not_found"
        assert refusal(call, hf, foreign.id) == unknown


def test_lists_show_ones_own(agent: Client, foreign: Process) -> None:
    mine = agent.run("exec sleep 1000", task="job")
    assert [process.id for process in agent.ps(all=True)] == [mine.id]
    assert [process.id for process in agent.ps(task="job")] == [mine.id]
    assert agent.ps(session="owner") == agent.ps(session="nobody") == []
    assert [row["id"] for row in agent.top()["processes"]] == [mine.id]
    assert agent.top()["total"] == 1
    assert agent.glance([mine.id, foreign.id])["unknown"] == [foreign.id]
    assert [session["session"] for session in agent.sessions()] == ["agent"]


def test_kills_of_many_leave_processes_of_others_alone(agent: Client, foreign: Process) -> None:
    mine = agent.run("exec sleep 1000", task="job")
    assert agent.kill(session="owner") == agent.kill(session="nobody") == []
    assert [result.id for result in agent.kill(task="job", grace=0.2)] == [mine.id]
    assert agent.kill(all=True) == []
    assert agent.end_session("owner") == agent.end_session("nobody")
    with holdfast.connect(session="owner") as owner:
        assert owner.inspect(foreign).status == "running"


def test_events_of_others_are_not_heard(agent: Client, foreign: Process) -> None:
    mine = agent.run("exec sleep 1000")
    eventually(lambda: mine.id in {event["id"] for event in agent.events("process.*")})
    seen = {event["id"] for event in agent.events("process.*")}
    assert foreign.id not in seen
    with holdfast.connect(session="owner") as owner:
        assert foreign.id in {event["id"] for event in owner.events("process.*")}


def test_it_starts_for_its_own_session_alone(agent: Client, foreign: Process) -> None:
    with pytest.raises(holdfast.BadValue):
        agent.run("true", session="owner")


def test_a_name_that_another_session_has_is_free(agent: Client, foreign: Process) -> None:
    """A refusal would tell that there is such a process."""
    mine = agent.run("exec sleep 1000", name="theirs")
    assert mine.name == "theirs"
    assert agent.inspect("theirs").id == mine.id
    with pytest.raises(holdfast.NotNow):
        agent.run("exec sleep 1000", name="theirs", if_running="allow")
    with holdfast.connect(session="owner", strict=True) as owner:
        assert owner.inspect("theirs").id == foreign.id
    with holdfast.connect(session="person") as person:
        with pytest.raises(holdfast.Ambiguous):
            person.inspect("theirs")
        with pytest.raises(holdfast.NotNow):
            person.run("exec sleep 1000", name="theirs")


def test_counts_are_ones_own(agent: Client, foreign: Process) -> None:
    before = agent.status()
    with holdfast.connect(session="owner") as owner:
        more = [owner.run("echo output; exec sleep 1000", if_running="allow") for _ in range(3)]
        owner.publish("custom.topic", {"session": "owner"})
        eventually(lambda: all(owner.inspect(one).output_bytes for one in more))
        try:
            assert (before["processes"], before["held"]) == (0, 0)
            assert {**agent.status(), "events": 0} == {**before, "events": 0}
            assert before["log_bytes"] is None
            assert owner.status()["processes"] >= 4
        finally:
            owner.kill(*more, grace=0)
            owner.remove(*more)


def test_the_doctor_counts_ones_own(agent: Client, foreign: Process) -> None:
    def held(hf: Client) -> dict[str, Any]:
        (check,) = [one for one in hf.doctor() if one["name"] == "held processes"]
        return dict(check)

    assert held(agent)["detail"] == "0, none with trouble"
    agent.run("exec sleep 1000")
    assert held(agent)["detail"] == "1, none with trouble"
    with holdfast.connect(session="owner") as owner:
        assert int(held(owner)["detail"].partition(",")[0]) >= 2


@pytest.mark.parametrize(("session", "is_ok"), [("owner", False), ("agent", True)])
def test_the_doctor_names_no_troubled_process_of_another_session(session: str, is_ok: bool) -> None:
    theirs = made.process(1, Running(100, 1.0), session="owner")
    registry = Registry()
    registry.put(theirs)
    usage = {"live": 1, "troubled": {theirs.id: "no space left", "proc_ffffffffffff": "not adopted"}}
    finding = held_processes(registry, Call(session, cast(Any, None), None, True), usage)
    assert finding.ok == is_ok
    assert (theirs.id in finding.detail) == (not is_ok)
    assert "proc_ffffffffffff" not in finding.detail
    assert "proc_ffffffffffff" in held_processes(registry, Call(None, cast(Any, None), None), usage).detail


def test_figures_of_the_instance_are_for_operators(agent: Client, instance: Path) -> None:
    with holdfast.connect() as person:
        api = Api(person)
        assert api.ask("GET", "/metrics", headers={"Holdfast-Strict": "true"}).status == 403
        assert api.ask("GET", "/metrics").status == 200


def test_a_held_command_gives_its_process_to_no_session_at_all(agent: Client, foreign: Process) -> None:
    """Nor by a parent session, which would get what it leaves."""
    mine = agent.run("exec sleep 1000")
    inside = {"HOLDFAST_ID": mine.id, "HOLDFAST_URL": ""}
    for words in (
        ("transfer", mine.id, "owner"),
        ("transfer", mine.id, "nobody"),
        ("session", "end", "agent", "--to", "nobody"),
        ("run", "-d", "--parent-session", "owner", "true"),
    ):
        assert run_cli(*words, env=inside).returncode == 125
    assert agent.inspect(mine).session == "agent"
    assert [one.id for one in agent.ps()] == [mine.id]


def test_a_start_with_an_id_in_use_reveals_nothing_of_its_process(agent: Client, foreign: Process) -> None:
    with pytest.raises(holdfast.BadValue) as taken:
        ask(agent, "start", id=foreign.id, command="true", cwd="/")
    assert "secret" not in str(taken.value.to_wire())


def test_notices_of_other_sessions_are_not_delivered(agent: Client, instance: Path) -> None:
    with holdfast.connect(session="owner") as owner:
        ended = owner.run("true", notify="any")
        eventually(lambda: owner.inbox())
        (notice,) = owner.inbox()
        assert agent.inbox(session="owner") == agent.inbox(session="nobody") == []
        assert agent.ack(notice.id)["unknown"] == [notice.id]
        assert agent.digest("owner") == agent.digest("nobody")
        assert [one.id for one in owner.inbox()] == [notice.id]
        owner.ack(notice.id)
        owner.remove(ended)


def test_operations_for_the_local_user_are_refused(agent: Client, instance: Path) -> None:
    with holdfast.connect(session="agent", strict=True, home=instance) as hf:
        for call in (hf.stop_daemon, hf.http, hf.audit, hf.sinks):
            with pytest.raises(holdfast.Denied):
                call()
        with pytest.raises(holdfast.NotFound):
            hf.rename_session("owner", "agent")
        assert hf.inbox(session="owner") == []


def test_a_session_cannot_become_another(agent: Client, foreign: Process, instance: Path) -> None:
    with holdfast.connect(session="agent", strict=True, home=instance) as hf:
        with pytest.raises(holdfast.BadValue):
            hf.rename_session("agent", "owner")
        with pytest.raises(holdfast.NotFound):
            hf.inspect(foreign)


def test_nor_take_a_name_that_another_has_left_something_under(instance: Path) -> None:
    mine, former, asked, told = (f"{what}-{os.urandom(4).hex()}" for what in ("mine", "former", "asked", "told"))
    with holdfast.connect() as person, holdfast.connect(session=asked, strict=True) as other:
        person.run("true", session=former)
        person.rename_session(former, f"{former}-now")
        with pytest.raises(holdfast.NoApprover):
            other.run(RISKY, gate=True)
        ended = person.run("true", session=told)
        eventually(lambda: person.inbox(session=told))
        person.remove(ended)
    with holdfast.connect(session=mine, strict=True) as hf:
        for name in (former, asked, told):
            with pytest.raises(holdfast.BadValue):
                hf.rename_session(mine, name)
        hf.rename_session(mine, f"{mine}-now")
        hf.rename_session(f"{mine}-now", mine)


def test_approvals_of_others_are_not_there(agent: Client, instance: Path) -> None:
    with holdfast.connect(session="owner", strict=True) as owner:
        with pytest.raises(holdfast.NoApprover) as refused:
            owner.run(RISKY, gate=True)
        assert refused.value.data is not None
        request = refused.value.data["approval"]["id"]
        assert request not in {one.id for one in agent.approvals(all=True)}
        for call in (agent.approve, agent.deny, agent.approval_shown):
            with pytest.raises(holdfast.NotFound):
                call(request)
    with holdfast.connect() as person:
        person.deny(request)


def test_every_operation_has_a_rule_for_such_connections() -> None:
    special = {operation for operation in OPERATIONS.values() if operation.traits.scope == Scope.SPECIAL}
    assert special == scope._SPECIAL.keys()


def test_an_operation_on_processes_is_limited_to_those_that_the_caller_sees() -> None:
    """By its scope. `glance` answers for ids that it does not know, so its handler filters them."""
    on_processes = [one for one in OPERATIONS.values() if {"process", "processes"} & one.FIELDS.keys()]
    assert len(on_processes) > 15
    assert {one.op for one in on_processes if one.traits.scope in (Scope.CHECKED, Scope.OPERATOR)} == {"glance"}


def test_every_operation_has_a_handler() -> None:
    assert HANDLERS.keys() == set(OPERATIONS.values())
    found = [handler.load() if isinstance(handler, Later) else handler for handler in HANDLERS.values()]
    assert all(map(iscoroutinefunction, found))


def test_what_an_operator_does_to_others_is_noted(instance: Path, foreign: Process) -> None:
    with holdfast.connect(session="person") as person:
        before = person.audit(limit=1)["entries"]
        after = before[-1]["seq"] if before else 0
        person.send(foreign, "one")
        person.send(foreign, "two")
        person.kill(foreign, signal="CONT")
        mine = person.run("exec sleep 1000")
        person.kill(mine, grace=0.2)

        def entries() -> list[dict[str, Any]]:
            return [one for one in person.audit(after=after)["entries"] if one["what"].startswith("operator.")]

        assert [(one["what"], one["processes"], one["by"]) for one in entries()] == [
            ("operator.send", [foreign.id], "person"),
            ("operator.kill", [foreign.id], "person"),
        ]
