"""A bundle on which the keeper fails is tried again until it succeeds: nothing of it is lost meanwhile."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from holdfast_keeper import bundle
from tests.keeper.driver import ONE, TWO, KeeperPair
from tests.support import eventually, is_alive, read_only


def troubled(pair: KeeperPair) -> dict[str, str]:
    found: dict[str, str] = pair.control.ask("usage")["troubled"]
    return found


@pytest.mark.parametrize("pty", [False, True])
def test_an_exit_during_a_read_only_phase_is_recorded_afterwards(pair: KeeperPair, pty: bool) -> None:
    pair.start(ONE, "stty -onlcr -echo 2>/dev/null; read x; echo last line; exit 7", stdin=True, pty=pty)
    with read_only(pair.place):
        pair.write(ONE, b"go\n")
        fact = pair.control.fact("quarantined", ONE)
        assert "Read-only file system" in fact["message"]
        assert ONE in troubled(pair)
        assert pair.control.ask("report", id=ONE)["trouble"] == "quarantined"
        assert pair.control.ask("report", id=ONE)["exit"] is None
    assert pair.exit_of(ONE)["code"] == 7
    assert pair.complete(ONE) == b"last line\n"
    assert pair.control.fact("recovered", ONE)
    assert troubled(pair) == {}


@pytest.mark.parametrize("killed", ["keeper", "anchor"])
def test_an_exit_during_a_read_only_phase_survives_a_kill_meanwhile(pair: KeeperPair, killed: str) -> None:
    pair.start(ONE, "read x; echo last line; exit 7", stdin=True)
    with read_only(pair.place):
        pair.write(ONE, b"go\n")
        pair.control.fact("quarantined", ONE)
        pair.kill(getattr(pair, killed))
    assert pair.exit_of(ONE)["code"] == 7
    assert pair.complete(ONE) == b"last line\n"


def test_a_kill_works_on_a_read_only_disk_and_its_reason_is_recorded_afterwards(pair: KeeperPair) -> None:
    report = pair.start(ONE, "sleep 1000")
    stubborn = pair.start(TWO, "trap '' TERM; echo ready; while :; do sleep 1000; done")
    eventually(lambda: b"ready" in pair.output(TWO))
    with read_only(pair.place):
        assert pair.stop(ONE, by="me")["survivors"] == []
        assert not is_alive(report["born"]["pid"])
        answer = pair.stop(TWO, grace=0.1)
        assert (answer["survivors"], answer["forced"]) == ([], True)
        assert not is_alive(stubborn["born"]["pid"])
    assert pair.exit_of(ONE)["signal"] == 15
    assert pair.exit_of(TWO)["signal"] == 9
    stop = pair.control.ask("report", id=ONE)["stop"]
    assert (stop["by"], stop["reason"], stop["forced"]) == ("me", "killed", False)
    assert pair.control.ask("report", id=TWO)["stop"]["forced"] is True
    state = bundle.read_state(str(bundle.find(pair.place, ONE)))
    assert state is not None and state.stop == stop


def test_the_anchor_records_what_it_reaped_when_the_disk_can_be_written_again(pair: KeeperPair) -> None:
    report = pair.start(ONE, "read x; exit 33", stdin=True)
    pair.kill(pair.keeper)  # the anchor is the parent now

    def witness() -> object:
        state = bundle.read_state(f"{pair.place}/live/{ONE}")
        return state is not None and state.witness is not None and state.witness["status"] == 33 << 8

    with read_only(pair.place):
        pair.write(ONE, b"go\n")
        os.kill(pair.keeper, signal.SIGSTOP)  # on kernels before 6.15 it depends on the anchor's record
        eventually(lambda: not os.path.exists(f"/proc/{report['born']['pid']}"))
        assert not witness()
    eventually(witness)
    os.kill(pair.keeper, signal.SIGCONT)
    assert pair.exit_of(ONE)["code"] == 33


def test_output_of_a_command_that_runs_waits_for_the_disk(pair: KeeperPair) -> None:
    pair.start(ONE, "read x; echo first; read x; echo second", stdin=True)
    with read_only(pair.place):
        pair.kill(pair.keeper)  # the new one has to open the log
        pair.write(ONE, b"\n")
        eventually(lambda: pair.control.ask("report", id=ONE)["trouble"] == "disk_full")
        assert pair.output(ONE) == b""
        pair.write(ONE, b"\n")
    assert pair.exit_of(ONE)["code"] == 0
    assert pair.complete(ONE) == b"first\nsecond\n"
    assert pair.control.ask("report", id=ONE)["trouble"] is None


def test_a_bundle_that_cannot_be_adopted_is_tried_again(pair: KeeperPair) -> None:
    pair.start(ONE, "read x; echo out; exit 5", stdin=True)
    fifo = Path(pair.place, "live", ONE, "out.fifo")
    state = fifo.with_name("state")
    state.rename(state.with_name("hidden"))
    (state.with_name("state")).write_bytes(b" " * 4096)
    pair.kill(pair.keeper)
    assert ONE in troubled(pair)
    state.with_name("hidden").rename(state)
    eventually(lambda: not troubled(pair))
    pair.write(ONE, b"\n")
    assert pair.exit_of(ONE)["code"] == 5
    assert pair.complete(ONE) == b"out\n"
