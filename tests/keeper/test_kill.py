"""A kill ends the whole tree, records how, and hits no other process."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from holdfast_keeper import bundle
from tests.keeper.driver import ONE, KeeperPair, Refused, named
from tests.support import eventually, is_alive

STUBBORN = "trap '' TERM; echo up; while :; do sleep 1; done"
ESCAPEE = f'(setsid bash -c "{STUBBORN}" & ) ; trap "exit 42" TERM; while :; do sleep 0.05; done'


def tree_of(pair: KeeperPair, process_id: str) -> list[int]:
    pids: list[int] = pair.control.ask("tree", id=process_id)["pids"]
    return pids


def test_a_command_that_handles_the_signal_exits_with_its_own_code(contained: KeeperPair) -> None:
    contained.start(ONE, "trap 'exit 42' TERM; echo up; while :; do sleep 0.05; done")
    eventually(lambda: contained.output(ONE))
    answer = contained.stop(ONE, by="agent-7")
    assert (answer["forced"], answer["survivors"]) == (False, [])
    assert (answer["report"]["exit"]["code"], answer["report"]["exit"]["signal"]) == (42, None)
    assert answer["report"]["stop"]["by"] == "agent-7"


def test_a_member_that_left_the_session_and_ignores_the_signal_is_forced(contained: KeeperPair) -> None:
    contained.start(ONE, ESCAPEE)
    eventually(lambda: len(tree_of(contained, ONE)) >= 3 and contained.output(ONE))
    members = tree_of(contained, ONE)
    answer = contained.stop(ONE, grace=0.3)
    assert (answer["forced"], answer["survivors"]) == (True, [])
    assert answer["report"]["exit"]["code"] == 42
    assert answer["report"]["stop"]["forced"]
    assert not any(is_alive(pid) for pid in members)


def test_a_stopped_tree_is_continued_to_handle_the_signal(contained: KeeperPair) -> None:
    contained.start(ONE, "trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done")
    eventually(lambda: contained.output(ONE))
    contained.control.ask("signal", id=ONE, signal=signal.SIGSTOP)
    answer = contained.stop(ONE, grace=20)
    assert (answer["forced"], answer["report"]["exit"]["code"]) == (False, 5)


def test_the_first_stop_request_is_never_overwritten(pair: KeeperPair) -> None:
    pair.start(ONE, STUBBORN)
    eventually(lambda: pair.output(ONE))
    first = pair.control.begin("stop", id=ONE, by="first", reason="deadline", signal=15, grace=60)
    second = pair.stop(ONE, grace=0, by="second")
    assert second["report"]["stop"]["by"] == "first"
    assert second["report"]["stop"]["reason"] == "deadline"
    assert pair.control.answer(first)["forced"]


def test_a_kill_interrupted_by_a_crash_is_continued(pair: KeeperPair) -> None:
    pair.start(ONE, STUBBORN)
    eventually(lambda: pair.output(ONE))
    pair.control.begin("stop", id=ONE, by="me", reason="killed", signal=15, grace=0.5)
    pair.control.ask("usage")
    pair.kill(pair.keeper)
    ended = pair.exit_of(ONE)
    assert ended["signal"] == signal.SIGKILL
    report = pair.control.ask("report", id=ONE)
    assert (report["stop"]["by"], report["stop"]["forced"]) == ("me", True)


def test_a_handled_signal_does_not_end_the_command(pair: KeeperPair) -> None:
    pair.start(ONE, "trap 'echo usr1' USR1; echo up; while :; do sleep 0.05; done")
    eventually(lambda: pair.output(ONE))
    pair.control.ask("signal", id=ONE, signal=signal.SIGUSR1)
    eventually(lambda: b"usr1" in pair.output(ONE))
    assert pair.control.ask("report", id=ONE)["exit"] is None


def test_leftovers_of_an_ended_command_can_be_killed(contained: KeeperPair) -> None:
    contained.start(ONE, "setsid sleep 300 >/dev/null 2>&1 & sleep 0.1; exit 0")
    contained.complete(ONE)
    (leftover,) = tree_of(contained, ONE)
    answer = contained.stop(ONE, grace=2)
    assert answer["survivors"] == [] and answer["report"]["stop"] is None
    assert not is_alive(leftover)


def test_a_reused_pid_is_not_signalled(pair: KeeperPair) -> None:
    """The record names another process, as after a reboot or when a pid was reused."""
    stranger = subprocess.Popen(["sleep", "300"])
    try:
        for name, start in ((named("a"), 1), (named("b"), 10**12)):
            pair.start(name, "sleep 300")
            live = f"{pair.place}/live/{name}"
            state = bundle.read_state(live)
            assert state is not None and state.born is not None
            pair.stop(name, grace=0)
            pair.complete(name)
            directory = f"{pair.place}/done/{name}"
            bundle.write_slot(
                directory, bundle.BORN, {**state.born, "pid": stranger.pid, "start": start, "group": None}
            )
            answer = pair.stop(name, grace=0)
            assert stranger.pid not in answer["survivors"]
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_after_a_reboot_a_tree_has_no_members(contained: KeeperPair) -> None:
    """The record is of another boot: its pids belong to other processes now."""
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


def test_an_adopted_bundle_with_a_reused_pid_has_no_running_command(pair: KeeperPair) -> None:
    stranger = subprocess.Popen(["sleep", "300"])
    try:
        pair.start(ONE, "sleep 300")
        live = f"{pair.place}/live/{ONE}"
        state = bundle.read_state(live)
        assert state is not None and state.born is not None
        for pid in (pair.anchor, pair.keeper):  # neither sees the end of the command
            os.kill(pid, signal.SIGSTOP)
        forged = {**state.born, "pid": stranger.pid, "start": state.born["start"] + 10**6, "group": None}
        bundle.write_slot(live, bundle.BORN, forged)
        os.kill(state.born["pid"], signal.SIGKILL)
        pair.kill(pair.keeper, pair.anchor)
        ended = pair.exit_of(ONE)
        assert (ended["status"], ended["witness"]) == (None, None)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_an_unknown_process_cannot_be_killed(pair: KeeperPair) -> None:
    with pytest.raises(Refused) as refused:
        pair.stop(named("unknown"))
    assert refused.value.code == "not_found"


@pytest.mark.parametrize("hostile", ["../live", "", "a/b", "x" * 100, 7, None, [ONE], {"a": 1}])
def test_an_id_that_is_a_path_is_refused(pair: KeeperPair, hostile: object) -> None:
    for op in ("start", "report", "stop", "forget", "tree", "signal", "write", "resize", "wait_output", "close_stdin"):
        with pytest.raises(Refused):
            pair.control.ask(op, id=hostile)
    assert pair.control.ask("usage")["live"] == 0


def test_a_kill_is_quick(pair: KeeperPair) -> None:
    pair.start(ONE, "sleep 300")
    began = time.monotonic()
    pair.stop(ONE, grace=30)
    assert time.monotonic() - began < 20, "not the grace of 30 s"
