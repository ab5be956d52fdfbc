"""Limits hold for the whole tree from its first instruction, and the exit record shows when they ended it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from holdfast_keeper import cgroups
from tests.keeper.driver import KeeperPair, Refused
from tests.support import eventually

MIB = 1 << 20
HOG = [sys.executable, "-c", "x = []\nwhile True: x.append(bytearray(1 << 20))"]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[KeeperPair]:
    pair = KeeperPair(tmp_path)
    places = [seat["directory"] for seat in pair.control.ask("limits").values()]
    yield pair
    pair.close()
    for place in places:  # anchor and keeper, which would remove them, were killed
        for name in _names(place):
            os.rmdir(f"{place}/{name}")
        os.rmdir(place)


def test_a_memory_hog_is_killed_and_recorded_as_oom(pair: KeeperPair) -> None:
    report = pair.start("hog", HOG, limits={"memory": 64 * MIB})
    exit_ = pair.exit_of("hog")
    assert (exit_["signal"], exit_["oom"]) == (9, True)
    assert 60 * MIB < exit_["peak"] <= 64 * MIB
    pair.complete("hog")
    eventually(lambda: not any(map(os.path.exists, groups(report))))


def test_the_whole_tree_is_killed_when_one_member_reaches_the_limit(pair: KeeperPair) -> None:
    hog = " ".join((HOG[0], "-c", f"'{HOG[2]}'"))
    pair.start("tree", f"sleep 600 & {hog}; sleep 600", limits={"memory": 64 * MIB})
    assert pair.exit_of("tree")["oom"] is True
    eventually(lambda: pair.control.ask("tree", id="tree")["pids"] == [])
    pair.complete("tree")


def test_other_commands_and_requests_are_not_delayed_by_a_hog(pair: KeeperPair) -> None:
    pair.start("other", "sleep 600", limits={"memory": 64 * MIB})
    pair.start("hog", HOG, limits={"memory": 256 * MIB})
    answered = 0
    while pair.control.ask("report", id="hog")["exit"] is None:
        pair.control.ask("usage")
        answered += 1
    assert answered > 3, "a thousand, on a machine that has nothing else to do"
    assert pair.control.ask("report", id="other")["exit"] is None


def test_the_first_instruction_is_within_the_limits(pair: KeeperPair) -> None:
    pair.start("seen", "cat /proc/self/cgroup", limits={"memory": 64 * MIB, "cpus": 0.5, "pids": 10})
    groups = pair.complete("seen").decode()
    born = pair.control.ask("report", id="seen")["born"]
    for controller, path in born["limits"].items():
        (own,) = [line for line in groups.splitlines() if f":{controller}:" in line.replace(",", ":")]
        assert path.endswith(own.rpartition(":")[2].rpartition("/")[2])


def test_a_fork_bomb_stays_within_the_pids_limit(pair: KeeperPair) -> None:
    pair.start("bomb", "bomb() { bomb | bomb & }; bomb; sleep 600", limits={"pids": 20})
    counted = [len(pair.control.ask("tree", id="bomb")["pids"]) for _ in range(50)]
    assert 0 < max(counted) <= 20
    assert pair.stop("bomb", grace=0.0)["survivors"] == []


def test_processor_time_is_limited(pair: KeeperPair) -> None:
    spin = "import time; end = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass"
    pair.start("spin", [sys.executable, "-c", spin], limits={"cpus": 0.2})
    assert pair.exit_of("spin")["cpu"] < 0.2 * 2.5 + 0.1


def test_limits_outlive_the_keeper(pair: KeeperPair) -> None:
    wait_then_hog = [sys.executable, "-c", f"input()\n{HOG[2]}"]
    report = pair.start("late", wait_then_hog, stdin=True, limits={"memory": 64 * MIB, "pids": 10})
    pair.kill(pair.keeper)
    assert all(map(os.path.isdir, groups(report)))
    pair.write("late", b"\n")
    assert pair.exit_of("late")["oom"] is True
    pair.complete("late")
    eventually(lambda: not any(map(os.path.exists, groups(report))))


def test_an_oom_kill_without_a_keeper_is_recorded_afterwards(pair: KeeperPair) -> None:
    report = pair.start(
        "unseen", ["/bin/bash", "-c", f"sleep 0.3; exec {HOG[0]} -c '{HOG[2]}'"], limits={"memory": 32 * MIB}
    )
    pair.kill(pair.keeper, pair.anchor)
    exit_ = pair.exit_of("unseen")
    assert exit_["oom"] is True
    assert report["born"]["limits"]


def test_directories_that_another_program_removed_are_made_again(pair: KeeperPair) -> None:
    report = pair.start("first", "true", limits={"pids": 50, "cpus": 0.5})
    pair.exit_of("first")
    pair.complete("first")
    directories = {os.path.dirname(group) for group in groups(report)}
    for directory in directories:
        eventually(partial(_rmdir, directory))
    pair.start("second", "exit 3", limits={"pids": 50, "cpus": 0.5})
    assert pair.exit_of("second")["code"] == 3
    assert all(map(os.path.isdir, directories))


def _rmdir(directory: str) -> bool:
    try:
        os.rmdir(directory)
    except OSError:
        return not os.path.exists(directory)
    return True


def test_cgroups_of_a_failed_start_are_removed(pair: KeeperPair) -> None:
    with pytest.raises(Refused):
        pair.start("nothing", ["/nowhere/at-all"], limits={"memory": 64 * MIB})
    kept = pair.start("kept", "sleep 600", limits={"memory": 64 * MIB})
    (path,) = groups(kept)
    pair.kill(pair.keeper)
    eventually(lambda: _names(os.path.dirname(path)) == [os.path.basename(path)])


@pytest.mark.parametrize("memory", [4096, 1 << 16, 1 << 18])
def test_a_memory_limit_below_the_minimum_is_reported(pair: KeeperPair, memory: int) -> None:
    refusal = None
    try:
        pair.start("tiny", "true", limits={"memory": memory})
    except Refused as refused:
        refusal = (refused.code, "too little" in str(refused))
    assert refusal == ("failed_start", True) if refusal else pair.exit_of("tiny")["oom"]


@pytest.mark.parametrize("limits", [{"memory": 0}, {"cpus": -1}, {"pids": "x"}, {"tea": 1}, {"memory": [1]}])
def test_invalid_limits_are_refused(pair: KeeperPair, limits: dict[str, object]) -> None:
    with pytest.raises(Refused) as refused:
        pair.start("odd", "true", limits=limits)
    assert refused.value.code == "bad_value"


def test_a_machine_that_cannot_limit_refuses(tmp_path: Path) -> None:
    pair = KeeperPair(tmp_path, HOLDFAST_NO_CGROUP="1")
    try:
        assert pair.control.ask("limits") == {"memory": None, "cpus": None, "pids": None}
        with pytest.raises(Refused, match="cannot limit memory and pids") as refused:
            pair.start("free", "true", limits={"memory": MIB, "pids": 3})
        assert refused.value.code == "unsupported"
        assert pair.hello()["live"] == []
    finally:
        pair.close()


def groups(report: dict[str, object]) -> list[str]:
    born = report["born"]
    assert isinstance(born, dict)
    return list(born["limits"].values())


def _names(place: str) -> list[str]:
    return [entry.name for entry in os.scandir(place) if entry.is_dir()]


@pytest.mark.parametrize(
    ("version", "limit", "value", "written"),
    [
        (1, "memory", 4096, ["memory.limit_in_bytes=4096", "memory.memsw.limit_in_bytes=4096", "memory.swappiness=0"]),
        (2, "memory", 4096, ["memory.max=4096", "memory.swap.max=0", "memory.oom.group=1"]),
        (1, "cpus", 1.5, ["cpu.cfs_period_us=100000", "cpu.cfs_quota_us=150000"]),
        (2, "cpus", 0.5, ["cpu.max=50000 100000"]),
        (2, "cpus", 0.001, ["cpu.max=1000 100000"]),
        (1, "pids", 7, ["pids.max=7"]),
        (2, "pids", 7, ["pids.max=7"]),
    ],
)
def test_what_is_written_for_a_limit(version: int, limit: str, value: float, written: list[str]) -> None:
    assert [f"{setting.file}={setting.value}" for setting in cgroups.settings(version, limit, value)] == written


def test_the_counts_of_both_versions_are_understood(tmp_path: Path) -> None:
    for name, file in (("two", "memory.events"), ("one", "memory.oom_control")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("low 0\nunder_oom 0\noom 5\noom_kill 3\noom_group_kill 1\n")
        assert cgroups.oom_kills({"memory": str(tmp_path / name)}) == 3
    assert cgroups.oom_kills({"pids": str(tmp_path)}) == 0
    assert cgroups.oom_kills({"memory": "/nowhere"}) == 0
