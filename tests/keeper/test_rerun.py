"""The same command again, in the same bundle: one log, no second instance, and nothing lost wherever a crash hits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.keeper.driver import ONE, TWO, Family, Refused
from tests.support import eventually, is_alive

RERUNS = [
    "rerun-moved",
    "rerun-state-aside",
    "rerun-files-moved",
    "start-prepared",
    "start-deposited",
    "start-released",
]
COUNTING = "n=$(($(cat times 2>/dev/null || echo 0) + 1)); echo $n > times; echo run $n; exit $n"


def rerun(family: Family, run: int, **also: Any) -> dict[str, Any]:
    report: dict[str, Any] = family.line.ask("rerun", id=ONE, run=run, **also)
    return report


def dying_later_at(point: str, directory: Path) -> Family:
    """As soon as the mark is taken away."""
    (directory / "died").touch()
    return Family(directory, HOLDFAST_DIE_AT=point, HOLDFAST_DIE_MARK=str(directory / "died"))


def persistently(family: Family, run: int) -> dict[str, Any]:
    """Ask as the daemon does: again when the line was cut."""
    try:
        return rerun(family, run)
    except ConnectionError:
        eventually(family.reconnect)
        return rerun(family, run)


def test_it_runs_again_with_one_log_and_stable_offsets(family: Family, tmp_path: Path) -> None:
    family.start(ONE, COUNTING, cwd=str(tmp_path))
    assert family.exit_of(ONE)["code"] == 1
    for run in (1, 2):
        report = rerun(family, run, streak=run)
        assert (report["born"]["run"], report["born"]["streak"], report["exit"]) == (run, run, None)
        assert report["streams"]["out"]["end"] == len("run 1\n") * run
        assert family.exit_of(ONE)["code"] == run + 1
    assert family.complete(ONE) == b"run 1\nrun 2\nrun 3\n"
    left = set(os.listdir(f"{family.place}/done/{ONE}"))
    assert {name for name in left if name.startswith(("state", "pending", "void"))} == {"state", "state.1"}


def test_the_same_run_again_is_the_same_and_a_wrong_one_is_refused(family: Family, tmp_path: Path) -> None:
    family.start(ONE, "sleep 60")
    with pytest.raises(Refused, match="still runs"):
        rerun(family, 1)
    family.stop(ONE)
    first = rerun(family, 1)
    assert rerun(family, 1)["born"] == first["born"]
    for wrong in (0, 2, 7):
        with pytest.raises(Refused):
            rerun(family, wrong)
    with pytest.raises(Refused) as unknown:
        family.line.ask("rerun", id=TWO, run=1)
    assert unknown.value.code == "not_found"


def test_many_who_ask_at_once_get_one_instance(family: Family, tmp_path: Path) -> None:
    family.start(ONE, "echo up >> starts; sleep 60", cwd=str(tmp_path))
    eventually((tmp_path / "starts").exists)
    family.stop(ONE)
    rids = [family.line.begin("rerun", id=ONE, run=1) for _ in range(20)]
    assert len({family.line.answer(rid)["born"]["pid"] for rid in rids}) == 1
    eventually(lambda: (tmp_path / "starts").read_text() == "up\nup\n")


@pytest.mark.parametrize("kind", [{}, {"pty": True}, {"stdin": True}, {"stdin": True, "split": True}])
def test_streams_are_as_they_were(family: Family, kind: dict[str, bool]) -> None:
    family.start(ONE, "echo out; echo err >&2; read x; echo got $x", **kind)
    takes_input = kind.get("stdin") or kind.get("pty")
    for run in range(3):
        if run:
            rerun(family, run)
        if takes_input:
            assert family.write(ONE, b"%d\n" % run, 0) == 2
        family.exit_of(ONE)
    family.complete(ONE)
    out = family.output(ONE).replace(b"\r", b"")
    expected = b"got %d" if takes_input else b"got"
    assert all((expected % run if takes_input else expected) in out for run in range(3))
    assert (out + family.output(ONE, "err")).count(b"err") == 3


def test_a_terminal_has_the_size_that_it_had_last(family: Family) -> None:
    family.start(ONE, "stty size", pty=True)
    family.exit_of(ONE)
    rerun(family, 1, cols=77, rows=11)
    assert family.complete(ONE) == b"30 120\r\n11 77\r\n"


def test_one_that_cannot_start_again_is_as_it_was(family: Family, tmp_path: Path) -> None:
    context = tmp_path / "room"
    context.mkdir()
    family.start(ONE, "echo here; exit 3", cwd=str(context))
    assert family.exit_of(ONE)["code"] == 3
    context.rmdir()
    for _ in range(2):
        with pytest.raises(Refused, match="cannot run in"):
            rerun(family, 1)
        report = family.line.ask("report", id=ONE)
        assert (report["exit"]["code"], report["born"]["run"]) == (3, 0)
    context.mkdir()
    rerun(family, 1)
    assert family.exit_of(ONE)["code"] == 3
    assert family.complete(ONE) == b"here\nhere\n"


def test_who_holds_the_output_of_an_older_run_does_not_hold_it_up(contained: Family) -> None:
    contained.start(ONE, "echo one; sleep 60 & echo $!; exit 1")
    contained.exit_of(ONE)
    contained.stop(ONE)
    pid = int(contained.output(ONE).split()[1])
    assert not is_alive(pid)
    rerun(contained, 1)
    contained.exit_of(ONE)
    contained.stop(ONE)
    assert contained.complete(ONE).count(b"one\n") == 2


def test_one_cap_for_all_runs(family: Family) -> None:
    family.start(ONE, "head -c 50000 /dev/zero", log_cap=64 << 10)
    for run in range(1, 6):
        family.exit_of(ONE)
        rerun(family, run)
    family.exit_of(ONE)
    assert len(family.complete(ONE)) <= 64 << 10
    report = family.line.ask("report", id=ONE)["streams"]["out"]
    assert report["end"] == 6 * 50_000
    assert family.line.ask("usage")["log_bytes"] == report["end"] - report["first"]


@pytest.mark.parametrize("who", ["keeper", "anchor", "both"])
def test_a_rerun_survives_its_keepers(family: Family, tmp_path: Path, who: str) -> None:
    family.start(ONE, "echo up; read x; echo $x; exit 5", stdin=True, cwd=str(tmp_path))
    family.stop(ONE)
    first = rerun(family, 1)["born"]
    family.kill(*((family.keeper, family.anchor) if who == "both" else (getattr(family, who),)))
    report = family.line.ask("report", id=ONE)
    assert (report["born"], report["exit"]) == (first, None)
    if who != "both":  # then its input is gone with them
        family.write(ONE, b"more\n")
        assert family.exit_of(ONE)["code"] == 5


@pytest.mark.parametrize("point", [*RERUNS, "spare-ready", "start-seen"])
@pytest.mark.parametrize("pty", [False, True])
def test_a_crash_at_any_point_runs_it_once_and_loses_nothing(tmp_path: Path, point: str, pty: bool) -> None:
    family = dying_later_at(point, tmp_path)
    try:
        family.start(ONE, COUNTING, cwd=str(tmp_path), pty=pty)
        assert family.exit_of(ONE)["code"] == 1
        (tmp_path / "died").unlink()
        persistently(family, 1)
        assert family.exit_of(ONE)["code"] == 2
        persistently(family, 2)
        assert family.exit_of(ONE)["code"] == 3
        assert family.complete(ONE).replace(b"\r", b"") == b"run 1\nrun 2\nrun 3\n"
        assert (tmp_path / "died").exists()
        assert (tmp_path / "times").read_text() == "3\n"
    finally:
        family.close()


@pytest.mark.parametrize("point", RERUNS[:5])
def test_between_two_runs_the_last_end_is_never_lost(tmp_path: Path, point: str) -> None:
    """Also if nobody asks again."""
    family = dying_later_at(point, tmp_path)
    try:
        family.start(ONE, COUNTING, cwd=str(tmp_path))
        family.exit_of(ONE)
        (tmp_path / "died").unlink()
        with pytest.raises(ConnectionError):
            rerun(family, 1)
        eventually(family.reconnect)
        report = family.line.ask("report", id=ONE)
        assert (report["exit"]["code"], report["born"]["run"]) == (1, 0)
        assert family.complete(ONE) == b"run 1\n"
        assert (tmp_path / "times").read_text() == "1\n"
    finally:
        family.close()


def test_a_stop_for_good_outranks_one_for_a_restart(family: Family) -> None:
    family.start(ONE, "trap '' TERM; echo up; while :; do sleep 0.05; done")
    eventually(lambda: family.output(ONE))
    restart = {"by": "", "reason": "restart", "signal": 15, "grace": 60.0}
    first = family.line.begin("stop", id=ONE, **restart)
    assert family.stop(ONE, grace=0.1, by="me")["report"]["stop"]["by"] == "me"
    family.line.answer(first)
    assert family.line.ask("report", id=ONE)["stop"]["reason"] == "killed"


def test_a_stop_after_the_end_is_recorded_when_asked(family: Family) -> None:
    family.start(ONE, "exit 3")
    family.exit_of(ONE)
    family.stop(ONE)
    assert family.line.ask("report", id=ONE)["stop"] is None
    late = {"by": "me", "reason": "killed", "signal": 15, "grace": 1.0, "late": True}
    stop = family.line.ask("stop", id=ONE, **late)["report"]["stop"]
    assert (stop["by"], stop["late"]) == ("me", True)


def test_a_quiet_stop_lets_it_go_by_itself_and_signals_only_then(family: Family) -> None:
    command = "trap 'exit 9' TERM; echo up; until [ -e /proc/self/nowhere ]; do sleep 0.02; done"
    family.start(ONE, command)
    eventually(lambda: family.output(ONE))
    quiet = {"by": "me", "reason": "killed", "signal": 15, "grace": 5.0}
    rid = family.line.begin("stop", id=ONE, **quiet, quiet=0.3)
    assert family.line.ask("report", id=ONE)["stop"]["by"] == "me"
    assert family.line.answer(rid)["report"]["exit"]["code"] == 9
    report = family.line.ask("report", id=ONE)
    assert report["exit"]["at"] - report["stop"]["at"] >= 0.3
