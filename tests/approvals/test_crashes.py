"""Requests and answers outlive the daemon: what was approved once is done once, whenever it is killed."""

from __future__ import annotations

import random
import resource
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast import Client, NoApprover
from tests.approvals import surfaces
from tests.approvals.surfaces import RISKY, surface
from tests.daemon.acting import kill_daemon
from tests.support import eventually


@pytest.fixture
def hf(home: Path) -> Iterator[Client]:
    with holdfast.connect(session="agent", strict=True) as client:
        yield client


@pytest.fixture
def person(home: Path) -> Iterator[Client]:
    with holdfast.connect(session="person") as client:
        yield client


def in_background(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """A thread that does it, and what came of it."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(work())
        except holdfast.HoldfastError as failed:
            results.append(failed)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


def test_once_is_once_whenever_the_daemon_is_killed(hf: Client, person: Client, tmp_path: Path) -> None:
    chance = random.Random(8)
    for trial in range(12):
        ran = tmp_path / f"ran-{trial}"
        command = f"{RISKY}; echo x >> {ran}"
        with pytest.raises(NoApprover) as refused:
            hf.run(command, gate=True)
        assert refused.value.data is not None
        person.approve(refused.value.data["approval"]["id"])
        pid = person.status()["pid"]
        thread, results = in_background(lambda command=command: hf.run(command, gate=True))  # type: ignore[misc]
        time.sleep(chance.uniform(0.0, 0.05))
        kill_daemon(person)
        thread.join(60)
        (process,) = results
        assert isinstance(process, holdfast.Process), process
        hf.wait(process.id, timeout=20)
        assert person.status()["pid"] != pid
        with pytest.raises(NoApprover):
            hf.run(command, gate=True)
        assert ran.read_text() == "x\n"


def test_a_start_that_waits_when_the_daemon_is_killed_asks_with_the_same_request(hf: Client, person: Client) -> None:
    with surface(surfaces.say_nothing) as heard:
        thread, results = in_background(lambda: hf.run(RISKY, gate=True))
        (request,) = eventually(lambda: [one for one in person.approvals() if one.fields["shown_at"]])
        kill_daemon(person)
        (again,) = eventually(lambda: person.approvals())
        assert again.id == request.id
        eventually(lambda: len([one for one in heard if one.state == "pending"]) > 1)
        person.approve(request)
        thread.join(20)
    (process,) = results
    assert isinstance(process, holdfast.Process), process
    assert process.id == request.process
    assert len(person.approvals(all=True)) == 1


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_pending_requests_and_standing_answers_outlive_the_daemon(hf: Client, person: Client, how: str) -> None:
    for command in (RISKY, f"{RISKY} a", f"{RISKY} b"):
        with pytest.raises(NoApprover):
            hf.run(command, gate=True)
    pending, once, always = person.approvals()
    person.approve(once)
    person.approve(always, "always")
    kill_daemon(person) if how == "killed" else person.stop_daemon()
    now = {one.id: (one.state, one.scope) for one in person.approvals()}
    assert now == {pending.id: ("pending", None), once.id: ("approved", "once"), always.id: ("approved", "always")}
    hf.run(f"{RISKY} a", gate=True)
    hf.run(f"{RISKY} b", gate=True)
    assert once.id not in {one.id for one in person.approvals()}


def test_a_start_that_waits_when_the_daemon_stops_is_not_withdrawn(hf: Client, person: Client) -> None:
    with surface(surfaces.say_nothing):
        thread, results = in_background(lambda: hf.run(RISKY, gate=True))
        (request,) = eventually(lambda: [one for one in person.approvals() if one.fields["shown_at"]])
        person.stop_daemon()
        (again,) = eventually(lambda: person.approvals())
        assert (again.id, again.state) == (request.id, "pending")
        person.approve(again)
        thread.join(20)
    assert isinstance(results[0], holdfast.Process), results


def test_an_approval_that_came_to_nothing_can_be_used_again(hf: Client, person: Client) -> None:
    hf.run("exec sleep 1000", name="taken")
    with pytest.raises(NoApprover):
        hf.run(RISKY, gate=True)
    (request,) = person.approvals()
    person.approve(request)
    with pytest.raises(holdfast.NotNow):
        hf.run(RISKY, gate=True, name="taken")
    assert hf.run(RISKY, gate=True).id.startswith("proc_")


def test_unanswered_and_unused_requests_expire(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("approval_keep = 0.5\n")
    with holdfast.connect(session="agent", strict=True) as hf, holdfast.connect() as person:
        with pytest.raises(NoApprover):
            hf.run(RISKY, gate=True)
        eventually(lambda: [one.state for one in person.approvals(all=True)] == ["expired"])
        with pytest.raises(NoApprover):
            hf.run(RISKY, gate=True)
        person.approve(person.approvals()[0])
        eventually(lambda: [one.state for one in person.approvals(all=True)] == ["expired"] * 2)
        with pytest.raises(NoApprover):
            hf.run(RISKY, gate=True)


def test_a_request_that_is_over_while_the_disk_is_full_does_not_end_the_daemon(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("approval_keep = 1\n")
    with holdfast.connect(session="agent", strict=True) as hf, holdfast.connect() as person:
        with pytest.raises(NoApprover):
            hf.run(RISKY, gate=True)
        pid = person.status()["pid"]
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        eventually(lambda: [one.state for one in person.approvals(all=True)] == ["expired"])
        assert person.ps() == [] and person.status()["pid"] == pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
