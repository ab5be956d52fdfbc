"""Reruns: the same bundle, one log, one instance at a time, and a crash at any failpoint loses nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from holdfast_keeper import bundle
from tests.keeper.driver import ONE, TWO, KeeperPair, Refused
from tests.support import eventually, is_alive

RERUNS = [
    "rerun-moved",
    "rerun-state-aside",
    "rerun-files-made",
    "start-prepared",
    "start-requested",
]
COUNTING = "n=$(($(cat times 2>/dev/null || echo 0) + 1)); echo $n > times; echo run $n; exit $n"


def rerun(pair: KeeperPair, run: int, **also: Any) -> dict[str, Any]:
    report: dict[str, Any] = pair.control.ask("rerun", id=ONE, run=run, **also)
    return report


def dying_later_at(point: str, directory: Path) -> KeeperPair:
    """It dies at the failpoint once the mark file is removed."""
    (directory / "died").touch()
    return KeeperPair(directory, HOLDFAST_DIE_AT=point, HOLDFAST_DIE_MARK=str(directory / "died"))


def persistently(pair: KeeperPair, run: int) -> dict[str, Any]:
    """As the daemon does: repeat the request when the connection was cut."""
    try:
        return rerun(pair, run)
    except ConnectionError:
        eventually(pair.reconnect)
        return rerun(pair, run)


def test_it_runs_again_with_one_log_and_stable_offsets(pair: KeeperPair, tmp_path: Path) -> None:
    pair.start(ONE, COUNTING, cwd=str(tmp_path))
    assert pair.exit_of(ONE)["code"] == 1
    for run in (1, 2):
        report = rerun(pair, run, streak=run)
        assert (report["born"]["run"], report["born"]["streak"], report["exit"]) == (run, run, None)
        assert report["streams"]["out"]["end"] == len("run 1\n") * run
        assert pair.exit_of(ONE)["code"] == run + 1
    assert pair.complete(ONE) == b"run 1\nrun 2\nrun 3\n"
    left = set(os.listdir(f"{pair.place}/done/{ONE}"))
    assert {name for name in left if name.startswith(("state", "pending", "void"))} == {"state", "state.1"}


def test_the_same_run_again_is_the_same_and_a_wrong_one_is_refused(pair: KeeperPair, tmp_path: Path) -> None:
    pair.start(ONE, "sleep 60")
    with pytest.raises(Refused, match="still runs"):
        rerun(pair, 1)
    pair.stop(ONE)
    first = rerun(pair, 1)
    assert rerun(pair, 1)["born"] == first["born"]
    for wrong in (0, 2, 7):
        with pytest.raises(Refused):
            rerun(pair, wrong)
    with pytest.raises(Refused) as unknown:
        pair.control.ask("rerun", id=TWO, run=1)
    assert unknown.value.code == "not_found"


def test_concurrent_requests_start_one_instance(pair: KeeperPair, tmp_path: Path) -> None:
    pair.start(ONE, "echo up >> starts; sleep 60", cwd=str(tmp_path))
    eventually((tmp_path / "starts").exists)
    pair.stop(ONE)
    rids = [pair.control.begin("rerun", id=ONE, run=1) for _ in range(20)]
    assert len({pair.control.answer(rid)["born"]["pid"] for rid in rids}) == 1
    eventually(lambda: (tmp_path / "starts").read_text() == "up\nup\n")


@pytest.mark.parametrize("kind", [{}, {"pty": True}, {"stdin": True}, {"stdin": True, "split": True}])
def test_a_rerun_has_the_same_kind_of_streams(pair: KeeperPair, kind: dict[str, bool]) -> None:
    pair.start(ONE, "echo out; echo err >&2; read x; echo got $x", **kind)
    takes_input = kind.get("stdin") or kind.get("pty")
    for run in range(3):
        if run:
            rerun(pair, run)
        if takes_input:
            assert pair.write(ONE, b"%d\n" % run, 0) == 2
        pair.exit_of(ONE)
    pair.complete(ONE)
    out = pair.output(ONE).replace(b"\r", b"")
    expected = b"got %d" if takes_input else b"got"
    assert all((expected % run if takes_input else expected) in out for run in range(3))
    assert (out + pair.output(ONE, "err")).count(b"err") == 3


def test_a_terminal_has_the_size_that_it_had_last(pair: KeeperPair) -> None:
    pair.start(ONE, "stty size", pty=True)
    pair.exit_of(ONE)
    rerun(pair, 1, cols=77, rows=11)
    assert pair.complete(ONE) == b"30 120\r\n11 77\r\n"


def test_a_rerun_that_cannot_start_leaves_the_last_run(pair: KeeperPair, tmp_path: Path) -> None:
    context = tmp_path / "room"
    context.mkdir()
    pair.start(ONE, "echo here; exit 3", cwd=str(context))
    assert pair.exit_of(ONE)["code"] == 3
    context.rmdir()
    for _ in range(2):
        with pytest.raises(Refused, match="cannot run in"):
            rerun(pair, 1)
        report = pair.control.ask("report", id=ONE)
        assert (report["exit"]["code"], report["born"]["run"]) == (3, 0)
    context.mkdir()
    rerun(pair, 1)
    assert pair.exit_of(ONE)["code"] == 3
    assert pair.complete(ONE) == b"here\nhere\n"


def test_a_leftover_of_an_older_run_does_not_delay_a_rerun(contained: KeeperPair) -> None:
    contained.start(ONE, "echo one; sleep 60 & echo $!; exit 1")
    contained.exit_of(ONE)
    contained.stop(ONE)
    pid = int(contained.output(ONE).split()[1])
    assert not is_alive(pid)
    rerun(contained, 1)
    contained.exit_of(ONE)
    contained.stop(ONE)
    assert contained.complete(ONE).count(b"one\n") == 2


def test_one_cap_for_all_runs(pair: KeeperPair) -> None:
    pair.start(ONE, "head -c 50000 /dev/zero", log_cap=64 << 10)
    for run in range(1, 6):
        pair.exit_of(ONE)
        rerun(pair, run)
    pair.exit_of(ONE)
    assert len(pair.complete(ONE)) <= 64 << 10
    report = pair.control.ask("report", id=ONE)["streams"]["out"]
    assert report["end"] == 6 * 50_000
    index = os.stat(bundle.times_path(f"{pair.place}/done/{ONE}", "out")).st_size
    assert pair.control.ask("usage")["log_bytes"] == report["end"] - report["first"] + index


@pytest.mark.parametrize("who", ["keeper", "anchor", "both"])
def test_a_rerun_survives_its_keepers(pair: KeeperPair, tmp_path: Path, who: str) -> None:
    pair.start(ONE, "echo up; read x; echo $x; exit 5", stdin=True, cwd=str(tmp_path))
    pair.stop(ONE)
    first = rerun(pair, 1)["born"]
    pair.kill(*((pair.keeper, pair.anchor) if who == "both" else (getattr(pair, who),)))
    report = pair.control.ask("report", id=ONE)
    assert (report["born"], report["exit"]) == (first, None)
    if who != "both":  # then its input is gone with them
        pair.write(ONE, b"more\n")
        assert pair.exit_of(ONE)["code"] == 5


@pytest.mark.parametrize("point", [*RERUNS, "child-deposited", "child-ready", "child-claimed", "start-seen"])
@pytest.mark.parametrize("pty", [False, True])
def test_a_crash_at_any_point_runs_it_once_and_loses_nothing(tmp_path: Path, point: str, pty: bool) -> None:
    pair = dying_later_at(point, tmp_path)
    try:
        pair.start(ONE, COUNTING, cwd=str(tmp_path), pty=pty)
        assert pair.exit_of(ONE)["code"] == 1
        (tmp_path / "died").unlink()
        persistently(pair, 1)
        assert pair.exit_of(ONE)["code"] == 2
        persistently(pair, 2)
        assert pair.exit_of(ONE)["code"] == 3
        assert pair.complete(ONE).replace(b"\r", b"") == b"run 1\nrun 2\nrun 3\n"
        assert (tmp_path / "died").exists()
        assert (tmp_path / "times").read_text() == "3\n"
    finally:
        pair.close()


@pytest.mark.parametrize("point", RERUNS[:4])
def test_between_two_runs_the_last_exit_is_never_lost(tmp_path: Path, point: str) -> None:
    """Also when the request is not repeated."""
    pair = dying_later_at(point, tmp_path)
    try:
        pair.start(ONE, COUNTING, cwd=str(tmp_path))
        pair.exit_of(ONE)
        (tmp_path / "died").unlink()
        with pytest.raises(ConnectionError):
            rerun(pair, 1)
        eventually(pair.reconnect)
        report = pair.control.ask("report", id=ONE)
        assert (report["exit"]["code"], report["born"]["run"]) == (1, 0)
        assert pair.complete(ONE) == b"run 1\n"
        assert (tmp_path / "times").read_text() == "1\n"
    finally:
        pair.close()


def test_a_stop_for_good_outranks_one_for_a_restart(pair: KeeperPair) -> None:
    pair.start(ONE, "trap '' TERM; echo up; while :; do sleep 0.05; done")
    eventually(lambda: pair.output(ONE))
    restart = {"by": "", "reason": "restart", "signal": 15, "grace": 60.0}
    first = pair.control.begin("stop", id=ONE, **restart)
    assert pair.stop(ONE, grace=0.1, by="me")["report"]["stop"]["by"] == "me"
    pair.control.answer(first)
    assert pair.control.ask("report", id=ONE)["stop"]["reason"] == "killed"


def test_a_late_stop_is_recorded_when_requested(pair: KeeperPair) -> None:
    pair.start(ONE, "exit 3")
    pair.exit_of(ONE)
    pair.stop(ONE)
    assert pair.control.ask("report", id=ONE)["stop"] is None
    late = {"by": "me", "reason": "killed", "signal": 15, "grace": 1.0, "late": True}
    stop = pair.control.ask("stop", id=ONE, **late)["report"]["stop"]
    assert (stop["by"], stop["late"]) == ("me", True)


def test_a_quiet_stop_sends_no_signal_until_the_quiet_time_is_over(pair: KeeperPair) -> None:
    command = "trap 'exit 9' TERM; echo up; until [ -e /proc/self/nowhere ]; do sleep 0.02; done"
    pair.start(ONE, command)
    eventually(lambda: pair.output(ONE))
    quiet = {"by": "me", "reason": "killed", "signal": 15, "grace": 5.0}
    rid = pair.control.begin("stop", id=ONE, **quiet, quiet=0.3)
    assert pair.control.ask("report", id=ONE)["stop"]["by"] == "me"
    assert pair.control.answer(rid)["report"]["exit"]["code"] == 9
    report = pair.control.ask("report", id=ONE)
    assert report["exit"]["at"] - report["stop"]["at"] >= 0.3
