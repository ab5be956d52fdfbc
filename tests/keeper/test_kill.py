"""A kill ends the whole tree, says how, and never hits anybody else."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from holdfast_keeper import bundle
from tests.keeper.driver import ONE, Family, Refused, named
from tests.support import eventually, is_alive

STUBBORN = "trap '' TERM; echo up; while :; do sleep 1; done"
ESCAPEE = f'(setsid bash -c "{STUBBORN}" & ) ; trap "exit 42" TERM; while :; do sleep 0.05; done'


def tree_of(family: Family, process_id: str) -> list[int]:
    pids: list[int] = family.line.ask("tree", id=process_id)["pids"]
    return pids


def test_a_command_that_obeys_is_reported_with_its_own_code(contained: Family) -> None:
    contained.start(ONE, "trap 'exit 42' TERM; echo up; while :; do sleep 0.05; done")
    eventually(lambda: contained.output(ONE))
    answer = contained.stop(ONE, by="agent-7")
    assert (answer["forced"], answer["survivors"]) == (False, [])
    assert (answer["report"]["exit"]["code"], answer["report"]["exit"]["signal"]) == (42, None)
    assert answer["report"]["stop"]["by"] == "agent-7"


def test_a_member_that_left_the_session_and_ignores_the_signal_is_forced(contained: Family) -> None:
    contained.start(ONE, ESCAPEE)
    eventually(lambda: len(tree_of(contained, ONE)) >= 3 and contained.output(ONE))
    members = tree_of(contained, ONE)
    answer = contained.stop(ONE, grace=0.3)
    assert (answer["forced"], answer["survivors"]) == (True, [])
    assert answer["report"]["exit"]["code"] == 42
    assert answer["report"]["stop"]["forced"]
    assert not any(is_alive(pid) for pid in members)


def test_a_stopped_tree_hears_the_polite_signal(contained: Family) -> None:
    contained.start(ONE, "trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done")
    eventually(lambda: contained.output(ONE))
    contained.line.ask("signal", id=ONE, signal=signal.SIGSTOP)
    answer = contained.stop(ONE, grace=20)
    assert (answer["forced"], answer["report"]["exit"]["code"]) == (False, 5)


def test_who_asked_first_is_never_overwritten(family: Family) -> None:
    family.start(ONE, STUBBORN)
    eventually(lambda: family.output(ONE))
    first = family.line.begin("stop", id=ONE, by="first", reason="deadline", signal=15, grace=60)
    second = family.stop(ONE, grace=0, by="second")
    assert second["report"]["stop"]["by"] == "first"
    assert second["report"]["stop"]["reason"] == "deadline"
    assert family.line.answer(first)["forced"]


def test_a_kill_that_a_crash_interrupted_is_carried_out(family: Family) -> None:
    family.start(ONE, STUBBORN)
    eventually(lambda: family.output(ONE))
    family.line.begin("stop", id=ONE, by="me", reason="killed", signal=15, grace=0.5)
    family.line.ask("usage")
    family.kill(family.keeper)
    ended = family.exit_of(ONE)
    assert ended["signal"] == signal.SIGKILL
    report = family.line.ask("report", id=ONE)
    assert (report["stop"]["by"], report["stop"]["forced"]) == ("me", True)


def test_just_a_signal_is_just_that(family: Family) -> None:
    family.start(ONE, "trap 'echo usr1' USR1; echo up; while :; do sleep 0.05; done")
    eventually(lambda: family.output(ONE))
    family.line.ask("signal", id=ONE, signal=signal.SIGUSR1)
    eventually(lambda: b"usr1" in family.output(ONE))
    assert family.line.ask("report", id=ONE)["exit"] is None


def test_leftovers_of_an_ended_command_can_be_killed(contained: Family) -> None:
    contained.start(ONE, "setsid sleep 300 >/dev/null 2>&1 & sleep 0.1; exit 0")
    contained.complete(ONE)
    (leftover,) = tree_of(contained, ONE)
    answer = contained.stop(ONE, grace=2)
    assert answer["survivors"] == [] and answer["report"]["stop"] is None
    assert not is_alive(leftover)


def test_a_recycled_pid_is_not_touched(family: Family) -> None:
    """A record that names a foreign process: as after a reboot, or when a number was given away again."""
    stranger = subprocess.Popen(["sleep", "300"])
    try:
        for name, start in ((named("a"), 1), (named("b"), 10**12)):
            family.start(name, "sleep 300")
            live = f"{family.place}/live/{name}"
            state = bundle.read_state(live)
            assert state is not None and state.born is not None
            family.stop(name, grace=0)
            family.complete(name)
            directory = f"{family.place}/done/{name}"
            bundle.write_slot(
                directory, bundle.BORN, {**state.born, "pid": stranger.pid, "start": start, "group": None}
            )
            answer = family.stop(name, grace=0)
            assert stranger.pid not in answer["survivors"]
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_after_a_reboot_nobody_is_taken_for_a_member(contained: Family) -> None:
    """A record of another boot, whose numbers belong to somebody else by now."""
    stranger = subprocess.Popen(["sleep", "300"], start_new_session=True)
    try:
        contained.start(ONE, "exit 0")
        contained.complete(ONE)
        directory = f"{contained.place}/done/{ONE}"
        state = bundle.read_state(directory)
        assert state is not None and state.born is not None
        start = state.born["start"] - 1000
        forged = {**state.born, "pid": stranger.pid, "start": start, "boot": "another", "group": None}
        bundle.write_slot(directory, bundle.BORN, forged)
        contained.stop(ONE, grace=0)
        bundle.write_slot(directory, bundle.BORN, {**forged, "boot": state.born["boot"]})
        contained.stop(ONE, grace=0)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_an_adopted_record_with_a_foreign_pid_is_not_taken_for_the_command(family: Family) -> None:
    stranger = subprocess.Popen(["sleep", "300"])
    try:
        family.start(ONE, "sleep 300")
        live = f"{family.place}/live/{ONE}"
        state = bundle.read_state(live)
        assert state is not None and state.born is not None
        os.kill(family.anchor, signal.SIGSTOP)
        forged = {**state.born, "pid": stranger.pid, "start": state.born["start"] + 10**6, "group": None}
        bundle.write_slot(live, bundle.BORN, forged)
        os.kill(state.born["pid"], signal.SIGKILL)
        family.kill(family.keeper, family.anchor)
        ended = family.exit_of(ONE)
        assert (ended["status"], ended["witness"]) == (None, None)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_an_unknown_process_cannot_be_killed(family: Family) -> None:
    with pytest.raises(Refused) as refused:
        family.stop(named("unknown"))
    assert refused.value.code == "not_found"


@pytest.mark.parametrize("hostile", ["../live", "", "a/b", "x" * 100, 7, None, [ONE], {"a": 1}])
def test_an_id_that_is_a_path_is_refused(family: Family, hostile: object) -> None:
    for op in ("start", "report", "stop", "forget", "tree", "signal", "write", "resize", "wait_output", "close_stdin"):
        with pytest.raises(Refused):
            family.line.ask(op, id=hostile)
    assert family.line.ask("usage")["live"] == 0


def test_a_kill_is_quick(family: Family) -> None:
    family.start(ONE, "sleep 300")
    began = time.monotonic()
    family.stop(ONE)
    assert time.monotonic() - began < 2
